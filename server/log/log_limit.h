#pragma once

#include <cstdint>
#include <optional>

#include "api/base/clock.h"
#include "api/base/mutex.h"

namespace tandem {

// Keeps one kind of line from flooding the log: lets so many through in a second and counts the others. Thread-safe.
class LogLimit {
 public:
  explicit LogLimit(int lines_per_second) : lines_per_second_(lines_per_second) {}

  // Whether a line may be written now: how many were left out since the last one that was; nullopt: leave it out, too.
  [[nodiscard]] std::optional<std::uint64_t> Allow(MonotonicTime now) EXCLUDES(mu_);

 private:
  // Constant after construction.
  const int lines_per_second_;

  Mutex mu_;
  std::optional<MonotonicTime> second_began_ GUARDED_BY(mu_);
  int written_ GUARDED_BY(mu_) = 0;
  std::uint64_t left_out_ GUARDED_BY(mu_) = 0;
};

}  // namespace tandem
