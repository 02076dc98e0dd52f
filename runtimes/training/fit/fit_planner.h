#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtimes/training/fit/fit_plan.h"

// Chooses what of a training step is held and what is computed again. Pure.

namespace tandem::training {

// Steps of a program between two cuts: the least that a plan decides upon. Bytes are differences, which may be
// negative.
struct FitGroup {
  std::size_t begin = 0;
  std::size_t end = 0;
  // What the step holds more after it than before, by what is held of it (the values of Retention).
  std::array<std::int64_t, 3> held{};
  std::array<double, 3> seconds{};  // To compute again what is not held.
  std::int64_t entry = 0;           // What goes into it, which is held by whoever made it.
  std::int64_t forward = 0;         // The most while it is computed, beyond what there was when it began.
  std::int64_t backward = 0;        // The same of its gradients.
  std::int64_t gradients = 0;       // What there is of the gradients of what follows it when its own begin.
};

// A step of training, as it is when everything is held.
struct FitProblem {
  std::vector<FitGroup> groups;  // In their order.
  double step_seconds = 0;
};

struct FitChoice {
  FitPlan plan;
  std::uint64_t peak = 0;    // The most that the step takes, in bytes.
  double added_seconds = 0;  // To what it takes when everything is held.
};

// The choice that adds the least time of those whose peak is within the bound; nullopt when none is. More memory never
// makes it slower. Not every plan is looked at: those that weigh bytes against seconds at some rate, held to pieces of
// some size, and those that change from one such rate to the next at some group.
[[nodiscard]] std::optional<FitChoice> ChoosePlan(const FitProblem& problem, std::uint64_t bound);
// The one with the least peak.
[[nodiscard]] FitChoice SmallestPlan(const FitProblem& problem);

}  // namespace tandem::training
