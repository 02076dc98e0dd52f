#pragma once

#include <chrono>
#include <optional>

#include "api/base/clock.h"

namespace tandem::jobs {

// Whether a trainer that was told to wait does, by what it says and by what it does: one that says so and computes does
// not wait. The first time it is to be stopped by signal, for it may have been in a long operator; the second time it
// is to be killed. Pure: time and what is seen are told. One thread.
class HoldWatch {
 public:
  // So long after it was told to it must wait.
  static constexpr std::chrono::seconds kBound{30};
  // So much CPU time it may use in each such time after that. What it has read ahead and what it writes down costs a
  // little, and so does to look for orders.
  static constexpr std::chrono::seconds kMostUse{3};

  enum class Verdict { kNone, kStop, kKill };

  // What is seen of it.
  struct Look {
    MonotonicTime now;
    bool held = false;                 // It says that it waits.
    std::chrono::nanoseconds used{0};  // CPU time since it began.
  };

  // It is told to wait, or to go on.
  void Begin(MonotonicTime now) { told_ = now; }
  void End();
  [[nodiscard]] bool on() const { return told_.has_value(); }
  // Whether it is past the time in which it must have begun to wait; before, looks tell nothing.
  [[nodiscard]] bool due(MonotonicTime now) const { return told_ && !found_ && now - *told_ >= kBound; }
  // What is to be done now; once in a hold.
  [[nodiscard]] Verdict Judge(const Look& look);

 private:
  std::optional<MonotonicTime> told_;
  std::optional<Look> mark_;  // From here on its use counts.
  bool found_ = false;        // That it does not wait, in this hold.
  int ignored_ = 0;           // Holds so far.
};

}  // namespace tandem::jobs
