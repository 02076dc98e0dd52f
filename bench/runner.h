#pragma once

#include <string>
#include <vector>

#include "api/base/result.h"
#include "bench/context.h"
#include "bench/report.h"
#include "bench/scenario.h"

namespace tandem::bench {

// Which rows to make: those whose "metric: cell" contains one of `only`, or all when that is empty.
struct Selection {
  std::vector<std::string> only;
};

// kInvalidArgument when one of the texts is in no row, with the rows that there are.
[[nodiscard]] Status CheckSelection(const Scenario& scenario, const Selection& selection);

// Makes the chosen rows, in the order of the file. Measurements without such rows are left out. The report has no
// date, commit or machine yet.
[[nodiscard]] Result<Report> RunScenario(const Scenario& scenario, const Selection& selection, BenchContext& context);

}  // namespace tandem::bench
