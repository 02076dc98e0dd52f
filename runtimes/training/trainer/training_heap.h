#pragma once

#include <cstdint>
#include <optional>

#include "api/base/lane_grant.h"
#include "api/base/result.h"

namespace tandem::training {

// Keeps what tensors give back, for the next ones, in memory of their own with huge pages where the system has them. A
// step allocates what the last one did, and the system takes longer to hand out zeroed pages than many an operator to
// fill them. Once, before the first tensor and before there are threads; holds for the whole process.
void KeepFreedMemory();

// Bytes of ATen's tensors, and of what its libraries take as if it were tensors.
struct TensorBytes {
  std::uint64_t live = 0;  // Now.
  std::uint64_t peak = 0;  // The most at once since the last ForgetTensorPeak().
};

// Counted since KeepFreedMemory(); nullopt where tensors have no memory of their own: with a sanitizer, or before that.
// Any thread.
[[nodiscard]] std::optional<TensorBytes> CountTensorBytes();
void ForgetTensorPeak();

// Gives back what is free, of tensors and of all else, until somebody needs it again. For when what follows is of
// another kind: after a model has been read, whose file was in memory as often as it took to make tensors of it, and
// before one is written.
void DropFreedMemory();

// Has the tensors of iterations put into a lane while that has a length; the descriptor of its pages, and whoever says
// how long it is, are borrowed for the rest of the process. Once, after KeepFreedMemory(). kUnsupported where tensors
// have no memory of their own.
[[nodiscard]] Status GiveLane(int fd, LaneGrant& grant);
// A boundary, before the turn is given up: what is still in the lane becomes this process's own, and so much is said of
// it; 0 as a rule. What the last iterations kept outside the lane for the next is given back when these are to be in
// it.
[[nodiscard]] Result<std::uint64_t> LeaveLane();

// As long as it lives, large tensors that this thread makes are the iteration's: they are put into the lane, if there
// is one. They are to be gone by the next boundary. Where the lane is too short and cannot grow, std::bad_alloc is
// thrown and outgrown() says what would have been enough.
class IterationTensors {
 public:
  IterationTensors();
  ~IterationTensors();
  IterationTensors(const IterationTensors&) = delete;
  IterationTensors& operator=(const IterationTensors&) = delete;

  // Whether they are put into a lane.
  [[nodiscard]] bool in_lane() const;
  [[nodiscard]] std::optional<std::uint64_t> outgrown() const;
};

}  // namespace tandem::training
