#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "api/base/clock.h"
#include "colocation/policy.h"

namespace tandem {

// Learns how much CPU time requests use, how unevenly, how much each, and how much at once. Used by one thread, which
// looks whenever it likes, but often.
class DemandMeter {
 public:
  // What the server has used, and how many requests it has answered, since it began; and how many are under way.
  struct Server {
    std::chrono::nanoseconds used{0};
    std::uint64_t answered = 0;
    std::int64_t pending = 0;
  };
  void Look(MonotonicTime now, const Server& server);

  // Nullopt until enough was seen.
  [[nodiscard]] std::optional<RequestDemand> demand() const;

 private:
  // A stretch of time that is looked at as one.
  struct Mark {
    MonotonicTime at;
    std::chrono::nanoseconds used{0};
    std::uint64_t answered = 0;
  };
  // Means that forget; seconds of CPU time.
  struct Means {
    double time = 0;
    double used = 0;

    void Add(double seconds, double use, double memory);
    [[nodiscard]] double rate() const { return time > 0 ? used / time : 0; }
  };

  std::optional<Mark> begin_;
  std::optional<Mark> busy_since_;  // The last look, when it found requests under way.
  Means busy_;
  double seen_ = 0;  // Seconds.
  Means lately_;
  Means long_since_;
  double squares_ = 0;    // Of how far stretches were from what was expected.
  double expected_ = 0;   // Of the same stretches.
  double each_used_ = 0;  // In stretches in which requests were answered.
  double each_count_ = 0;
};

}  // namespace tandem
