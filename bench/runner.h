#pragma once

#include <string>
#include <vector>

#include "api/base/result.h"
#include "bench/context.h"
#include "bench/report.h"
#include "bench/scenario.h"

namespace tandem::bench {

// Which rows to make, and at which pace.
struct Selection {
  std::vector<std::string> only;  // Those whose "metric: cell" contains one of these; all when it is empty.
  bool quick = false;
};

// kInvalidArgument when one of the texts is in no row, with the rows that there are.
[[nodiscard]] Status CheckSelection(const Scenario& scenario, const Selection& selection);

// Makes the chosen rows, in the order of the file. Measurements without such rows are left out. Sets the pace of the
// context for each measurement. The report has no date, commit or machine yet.
[[nodiscard]] Result<Report> RunScenario(const Scenario& scenario, const Selection& selection, BenchContext& context);

}  // namespace tandem::bench
