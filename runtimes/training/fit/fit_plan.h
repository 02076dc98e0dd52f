#pragma once

#include <cstddef>
#include <vector>

// How the memory of a training step is kept small: plain values, made by a planner (fit_planner.h) and followed by a
// Recomputer (recomputer.h).

namespace tandem::training {

// What is held of what the gradients of a segment need, from when it is computed until they are.
enum class Retention {
  kAll,      // Everything.
  kCostly,   // What convolutions, products of matrices and the like have made. The rest is computed again from that.
  kNothing,  // What goes into the segment.
};

// Steps of a program, one after the other.
struct FitSegment {
  std::size_t begin = 0;
  std::size_t end = 0;
  Retention retention = Retention::kAll;
  // Where its parts begin; the first where it does itself. What a part needs is computed again when the first of its
  // gradients is, from the beginning of the segment, and held until the last is. One part: every step is computed again
  // once (speed-centric). Several: less is held at a time, and more is computed (memory-centric). Empty: one part.
  std::vector<std::size_t> parts;

  friend bool operator==(const FitSegment&, const FitSegment&) = default;
};

// In their order, none overlapping another. Of steps that are in none, everything is held.
struct FitPlan {
  std::vector<FitSegment> segments;

  friend bool operator==(const FitPlan&, const FitPlan&) = default;
};

}  // namespace tandem::training
