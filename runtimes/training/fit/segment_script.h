#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtimes/training/fit/fit_plan.h"
#include "runtimes/training/graph/program.h"

namespace tandem::training {

// Where a run of a program may be cut: before which of its steps (and after the last) no value is on its way that a
// later one changes in place, so that what goes into a segment stays what it is. Pure.
[[nodiscard]] std::vector<std::size_t> CutPoints(std::span<const ProgramStep> steps);

// For each slot the step that fills it; steps.size() for those of inputs and constants.
[[nodiscard]] std::vector<std::size_t> MakersOf(std::span<const ProgramStep> steps);

// What is held of a segment and what is computed again, step by step. Constant after construction.
class SegmentScript {
 public:
  SegmentScript(const FitSegment& segment, std::span<const ProgramStep> steps, std::span<const std::size_t> makers);

  [[nodiscard]] const FitSegment& segment() const { return segment_; }
  [[nodiscard]] bool Contains(std::size_t step) const { return step >= segment_.begin && step < segment_.end; }
  // Whether a step of the segment is computed again.
  [[nodiscard]] bool IsRepeated(std::size_t step) const { return repeated_[step - segment_.begin]; }
  // Slots of what such steps read and that is made before the segment.
  [[nodiscard]] const std::vector<int>& entries() const { return entries_; }
  // Slots of what is made in it and read after it.
  [[nodiscard]] const std::vector<int>& exits() const { return exits_; }
  // Of the outputs of a step that is not computed again those that such steps read.
  [[nodiscard]] const std::vector<int>& holds(std::size_t step) const { return holds_[step - segment_.begin]; }
  // The steps of the part that a step is in.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  [[nodiscard]] Range PartOf(std::size_t step) const;

 private:
  FitSegment segment_;
  std::vector<bool> repeated_;
  std::vector<int> entries_;
  std::vector<int> exits_;
  std::vector<std::vector<int>> holds_;
};

}  // namespace tandem::training
