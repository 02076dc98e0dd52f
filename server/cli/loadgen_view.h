#pragma once

#include <optional>

#include "loadgen/run.h"
#include "loadgen/run_report.h"

namespace tandem::cli {

// Shows a run of `tandem loadgen` on standard output: one line that changes on a terminal, a line an interval in a
// pipe, and at the end a table with the verdict. Used by one thread at a time.
class LoadgenView {
 public:
  LoadgenView();

  // `held` is the share of the time that training beside it was held lately, where there is any.
  void Update(const loadgen::LoadProgress& progress, std::optional<double> held = std::nullopt);
  // Ends the line that changes, if there is one.
  void EndLine();
  void Summarize(const loadgen::RunReport& report);

 private:
  const bool terminal_;
  bool in_line_ = false;
};

}  // namespace tandem::cli
