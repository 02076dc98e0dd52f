#pragma once

#include <string>
#include <vector>

#include "loadgen/load_report.h"
#include "loadgen/run.h"

namespace tandem::cli {

// Shows a load as it runs: a table that is redrawn in place on a terminal, one plain line an interval in a pipe.
// Used by one thread at a time.
class DemoView {
 public:
  explicit DemoView(std::vector<std::string> models);

  void Update(const loadgen::LoadProgress& progress);
  void Summarize(const loadgen::LoadReport& report);

 private:
  const std::vector<std::string> models_;
  const bool terminal_;
  std::string reset_;  // Moves the cursor back over what was drawn last.
};

}  // namespace tandem::cli
