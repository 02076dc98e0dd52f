#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/result.h"

namespace tandem::bench {

// What was done in a turn.
struct Turn {
  std::int64_t steps = 0;
  double seconds = 0;
  double longest_op = 0;  // Seconds between two askings of the gate; 0 where nobody asks.
};

// The trained side of a comparison: trains when it is told to, and waits otherwise. An order is a line "SECONDS STEPS":
// the turn is over when either is reached, after a whole step; the answer is a line "STEPS SECONDS LONGEST". The first
// step is nobody's turn. Called on the training thread.
class Turns {
 public:
  // A socket; not closed by this.
  explicit Turns(int fd) : fd_(fd) {}

  // After every step. False when no more is wanted.
  [[nodiscard]] bool StepDone();
  // Before every operator.
  void OpBegins();
  // Which turn it is; the first is 1.
  [[nodiscard]] std::int64_t number() const { return number_; }

 private:
  // Waits for an order; false at the end of all.
  bool Await();

  const int fd_;
  bool begun_ = false;
  MonotonicTime began_;
  std::optional<MonotonicTime> last_op_;
  std::chrono::duration<double> length_{0};
  std::int64_t most_steps_ = 0;
  std::int64_t number_ = 0;
  Turn turn_;
};

// The other end: one turn of `seconds` or `steps`, whichever is over first. kUnavailable when nobody answers any more.
[[nodiscard]] Result<Turn> TakeTurn(int fd, double seconds, std::int64_t steps);
// Waits until the first step is done.
[[nodiscard]] Status AwaitFirstStep(int fd);

}  // namespace tandem::bench
