#pragma once

#include <chrono>
#include <optional>

namespace tandem::jobs {

// Whether a trainer that was told to wait does, by what it says and by what it does: one that says so and computes does
// not wait. The first time it is to be stopped by signal, for it may have been in a long operator; the second time it
// is to be killed. Pure: what is seen is told. One thread.
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
    std::chrono::nanoseconds passed{0};  // Since the last look, as far as it could have obeyed meanwhile.
    bool held = false;                   // It says that it waits.
    std::chrono::nanoseconds used{0};    // CPU time since it began.
  };

  // It is told to wait, or to go on.
  void Begin() { on_ = true; }
  void End();
  [[nodiscard]] bool on() const { return on_; }
  // What is to be done now; once in a hold.
  [[nodiscard]] Verdict Judge(const Look& look);

 private:
  bool on_ = false;
  bool found_ = false;                  // That it does not wait, in this hold.
  std::chrono::nanoseconds passed_{0};  // Of this hold; from the bound on, of the time in which its use counts.
  std::optional<std::chrono::nanoseconds> mark_;  // What it had used when that began.
  int ignored_ = 0;                               // Holds so far.
};

}  // namespace tandem::jobs
