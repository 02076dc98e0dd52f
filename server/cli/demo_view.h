#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "loadgen/run.h"

namespace tandem::cli {

// Shows a load as it runs: a table that is redrawn in place on a terminal, plain lines an interval in a pipe. Used by
// one thread at a time.
class DemoView {
 public:
  explicit DemoView(std::vector<std::string> models);

  // Room for a line below the table; 0: no terminal, and no limit.
  [[nodiscard]] std::size_t columns() const;

  // `lines` stand below. An open end is one that nobody knows yet.
  void Update(const loadgen::LoadProgress& progress, const std::vector<std::string>& lines, bool open_end);
  // Leaves what was drawn last as it is: other output follows.
  void Leave();

 private:
  const std::vector<std::string> models_;
  const bool terminal_;
  std::string reset_;  // Moves the cursor back over what was drawn last, and clears it.
};

}  // namespace tandem::cli
