#pragma once

#include <string>
#include <vector>

#include "api/base/result.h"
#include "bench/json_fields.h"
#include "bench/measurement.h"
#include "bench/report.h"

namespace tandem::bench {

// What a row shows of a measurement's series: `of`, less `minus`, divided by `over`; each within one repetition. Of
// several in `over` the one that makes the row look worst counts, each time.
struct RowSpec {
  std::string metric;
  std::string cell;  // May hold {threads}: of one inference.
  std::string of;
  std::string minus;              // Empty: nothing.
  std::vector<std::string> over;  // Empty: nothing.
  std::string unit;
  Goal goal;

  // "metric: cell", by which people choose rows.
  [[nodiscard]] std::string title() const { return metric + ": " + cell; }
  [[nodiscard]] std::vector<std::string> series() const;
};

// Refuses series that are not in `known` and units that are not known.
[[nodiscard]] Result<RowSpec> ParseRowSpec(JsonFields fields, const std::vector<std::string>& known);

// Pure. A row whose series did not all run did not run either, for the same reason.
[[nodiscard]] Row ComputeRow(const RowSpec& spec, const SeriesMap& series);

}  // namespace tandem::bench
