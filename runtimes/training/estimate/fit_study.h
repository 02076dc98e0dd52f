#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "api/base/result.h"
#include "runtimes/training/estimate/step_trace.h"
#include "runtimes/training/fit/fit_planner.h"
#include "runtimes/training/trainer/learner.h"

namespace tandem::training {

// What was found for a step.
struct FittedStep {
  FitPlan plan;
  std::uint64_t peak = 0;   // The most that it takes beyond what is there between two steps.
  std::uint64_t kept = 0;   // The same if everything is held.
  std::uint64_t least = 0;  // The same by the plan that takes least.
  double slowdown = 0;      // The time that is added, as a share of a step's.
};

// Finds the plan by which a step of a hollow learner stays within a bound: goes through steps under plans that hold
// all, what is costly, and next to nothing to learn what each group of operators takes (the bytes are exact), has the
// planner choose, and goes through a step by what it chose, so that the peak that is told is exact, too. Times are from
// operations and bytes. Training thread only.
class FitStudy {
 public:
  // Goes through one step, from between two of them.
  using Step = std::function<Status()>;

  // Borrows all. The trace is the learner's gate; a step was gone through before.
  FitStudy(Learner& learner, MetaLedger& ledger, StepTrace& trace, Step step)
      : learner_(learner), ledger_(ledger), trace_(trace), step_(std::move(step)) {}

  // The learner follows the plan afterwards. Where no plan is within the bound, the one that takes least: its peak
  // tells of it.
  [[nodiscard]] Result<FittedStep> Fit(std::uint64_t bound);

 private:
  // The last batch of a step, by groups.
  struct Account {
    std::vector<std::int64_t> live;      // As each group begins, and behind the last of them.
    std::vector<std::int64_t> forward;   // The most of each, beyond that.
    std::vector<std::int64_t> begun;     // As its gradients begin.
    std::vector<std::int64_t> backward;  // The most of these, beyond that.
    std::int64_t peak = 0;
  };

  [[nodiscard]] Result<Account> Go(const FitPlan& plan);
  [[nodiscard]] Status Learn();
  void LearnTimes();
  [[nodiscard]] std::size_t GroupOf(std::size_t step) const;
  [[nodiscard]] FitPlan Singly(Retention retention) const;
  // Of a plan the planner has chosen what it takes in truth.
  [[nodiscard]] Result<FittedStep> Try(const FitChoice& choice);

  Learner& learner_;
  MetaLedger& ledger_;
  StepTrace& trace_;
  const Step step_;
  FitProblem problem_;
  std::int64_t between_ = 0;  // What is live between two steps.
  std::int64_t before_ = 0;   // What is there beyond that when the last batch of a step begins.
};

}  // namespace tandem::training
