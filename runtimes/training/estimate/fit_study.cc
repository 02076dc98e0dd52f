#include "runtimes/training/estimate/fit_study.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtimes/training/fit/segment_script.h"

namespace tandem::training {
namespace {

// Where little is on its way: of cuts one after the other those where fewer values are than before and after, as far as
// there is a before and an after. What is read from the batch does not count, as it is there in any case.
std::vector<std::size_t> NarrowCuts(std::span<const ProgramStep> steps) {
  const std::vector<std::size_t> makers = MakersOf(steps);
  std::vector<int> on_their_way(steps.size() + 1);
  int live = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    on_their_way[i] = live;
    for (const int slot : steps[i].outputs) live += slot >= 0;
    for (const int slot : steps[i].last_uses) live -= makers[static_cast<std::size_t>(slot)] < steps.size();
  }
  on_their_way[steps.size()] = live;
  const std::vector<std::size_t> cuts = CutPoints(steps);
  const auto count = [&](std::size_t i) { return on_their_way[cuts[i]]; };
  std::vector<std::size_t> narrow;
  // The first is before all steps, where nothing is on its way yet.
  for (std::size_t i = 1, next = 0; i < cuts.size(); i = next) {
    for (next = i; next < cuts.size() && count(next) == count(i); ++next) {
    }
    const bool falls = i == 1 || count(i - 1) > count(i);
    const bool rises = next == cuts.size() || count(next) > count(i);
    for (std::size_t each = i; falls && rises && each < next; ++each) narrow.push_back(cuts[each]);
  }
  for (const std::size_t end : {std::size_t{0}, steps.size()}) {
    if (!std::ranges::contains(narrow, end)) narrow.push_back(end);
  }
  std::ranges::sort(narrow);
  return narrow;
}

// So many groups at most, for the planner's sake.
std::vector<std::size_t> Thinned(const std::vector<std::size_t>& cuts) {
  constexpr std::size_t kMost = 256;
  const std::size_t every = (cuts.size() + kMost - 1) / kMost;
  std::vector<std::size_t> thinned;
  for (std::size_t i = 0; i + 1 < cuts.size(); i += every) thinned.push_back(cuts[i]);
  thinned.push_back(cuts.back());
  return thinned;
}

std::int64_t Signed(std::uint64_t bytes) {
  return static_cast<std::int64_t>(bytes);
}

// As two cores with AVX-512 do them in a step of training; only their proportion counts.
double SecondsOf(const OpWork& work) {
  constexpr double kOperations = 3e11;
  constexpr double kBytes = 2e10;
  return work.flops / kOperations + static_cast<double>(work.bytes) / kBytes;
}

}  // namespace

std::size_t FitStudy::GroupOf(std::size_t step) const {
  const auto after = std::ranges::upper_bound(problem_.groups, step, {}, &FitGroup::begin);
  return static_cast<std::size_t>(after - problem_.groups.begin()) - 1;
}

FitPlan FitStudy::Singly(Retention retention) const {
  FitPlan plan;
  for (const FitGroup& group : problem_.groups) {
    if (group.begin == group.end || retention == Retention::kAll) continue;
    plan.segments.push_back({.begin = group.begin, .end = group.end, .retention = retention, .parts = {}});
  }
  return plan;
}

Result<FitStudy::Account> FitStudy::Go(const FitPlan& plan) {
  learner_.Follow(plan);
  trace_.Clear();
  TANDEM_TRY(step_());
  std::span<const StepTrace::Mark> marks = trace_.Marks();
  Account account;
  for (const auto& mark : marks) account.peak = std::max(account.peak, Signed(mark.peak));
  // Where more batches make up a step, the last has the gradients of all beside it.
  const std::size_t loss = learner_.program().size();
  const auto index = [&](std::span<const StepTrace::Mark> among, std::size_t op) {
    return static_cast<std::size_t>(std::ranges::find_last(among, op, &StepTrace::Mark::op).begin() - among.begin());
  };
  // The first operator may be computed again behind the loss.
  const std::size_t begin = index(marks.first(index(marks, loss)), 0);
  const std::size_t count = problem_.groups.size();
  account.live.assign(count + 1, -1);
  account.begun.assign(count, -1);
  account.forward.assign(count, 0);
  account.backward.assign(count, 0);
  const auto raise = [](std::int64_t& most, std::int64_t value) { most = std::max(most, value); };
  bool back = false;
  std::size_t group = 0;
  for (const auto& mark : marks.subspan(begin)) {
    if (mark.op > 2 * loss + 2) break;  // The update of the parameters.
    if (mark.op <= loss && !back) {
      group = GroupOf(mark.op);
      if (account.live[group] < 0) account.live[group] = Signed(mark.live);
      raise(account.forward[group], Signed(mark.peak) - account.live[group]);
      continue;
    }
    if (!back) account.live[count] = Signed(mark.live);
    back = true;
    // What is computed again, and gradients that are kept, are part of what went before.
    if (mark.op > loss && mark.op < 2 * (loss + 1)) group = GroupOf(mark.op - loss - 1);
    if (account.begun[group] < 0) account.begun[group] = Signed(mark.live);
    raise(account.backward[group], Signed(mark.peak) - account.begun[group]);
  }
  if (!back) return Fail(ErrorCode::kInternal, "a step has no gradients");
  return account;
}

void FitStudy::LearnTimes() {
  const std::span<const ProgramStep> steps = learner_.program().steps();
  const std::vector<std::size_t> makers = MakersOf(steps);
  for (FitGroup& group : problem_.groups) {
    for (const Retention retention : {Retention::kCostly, Retention::kNothing}) {
      const SegmentScript script({.begin = group.begin, .end = group.end, .retention = retention, .parts = {}}, steps,
                                 makers);
      for (std::size_t i = group.begin; i < group.end; ++i) {
        if (script.IsRepeated(i)) group.seconds[static_cast<std::size_t>(retention)] += SecondsOf(trace_.WorkOf(i));
      }
    }
  }
  double forward = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) forward += SecondsOf(trace_.WorkOf(i));
  problem_.step_seconds = 3 * forward;  // Gradients of what is read, and of what it is computed with.
}

Status FitStudy::Learn() {
  const std::span<const ProgramStep> steps = learner_.program().steps();
  const std::vector<std::size_t> cuts = Thinned(NarrowCuts(steps));
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) problem_.groups.push_back({.begin = cuts[i], .end = cuts[i + 1]});
  // The loss is a group of no steps.
  problem_.groups.push_back({.begin = steps.size(), .end = steps.size()});
  between_ = Signed(ledger_.live());
  LearnTimes();
  for (const Retention retention : {Retention::kAll, Retention::kCostly, Retention::kNothing}) {
    TANDEM_ASSIGN(const Account account, Go(Singly(retention)));
    const auto held = static_cast<std::size_t>(retention);
    for (std::size_t i = 0; i < problem_.groups.size(); ++i) {
      FitGroup& group = problem_.groups[i];
      group.held[held] = account.live[i + 1] - account.live[i];
      if (retention == Retention::kNothing && i > 0) {
        group.entry = std::max<std::int64_t>(problem_.groups[i - 1].held[held], 0);
      }
      if (retention != Retention::kAll) continue;
      group.forward = account.forward[i];
      group.backward = account.backward[i];
      // Without gradients there is nothing to hold, nor to give back.
      group.gradients = account.begun[i] < 0 ? 0 : account.begun[i] - account.live[i + 1];
    }
    if (retention == Retention::kAll) before_ = account.live[0] - between_;
  }
  return {};
}

Result<FittedStep> FitStudy::Try(const FitChoice& choice) {
  TANDEM_ASSIGN(const Account account, Go(choice.plan));
  return FittedStep{.plan = choice.plan,
                    .peak = static_cast<std::uint64_t>(account.peak - between_),
                    .slowdown = choice.added_seconds / problem_.step_seconds};
}

Result<FittedStep> FitStudy::Fit(std::uint64_t bound) {
  between_ = Signed(ledger_.live());
  TANDEM_TRY(Learn());
  TANDEM_ASSIGN(const FittedStep all, Try({}));
  TANDEM_ASSIGN(FittedStep best, Try(SmallestPlan(problem_)));
  const std::uint64_t least = std::min(best.peak, all.peak);
  if (all.peak <= bound || best.peak > all.peak) best = all;
  // What the planner adds up is near the truth; how far off it was is what it is told the next time.
  constexpr int kTries = 5;
  std::int64_t target = Signed(bound) - before_;
  for (int i = 0; i < kTries && best.slowdown > 0 && target > 0; ++i) {
    const auto choice = ChoosePlan(problem_, static_cast<std::uint64_t>(target));
    if (!choice) break;
    TANDEM_ASSIGN(FittedStep tried, Try(*choice));
    if (tried.peak <= bound && (best.peak > bound || tried.slowdown < best.slowdown)) best = tried;
    const std::int64_t next = target + Signed(bound) - Signed(tried.peak);
    if (next == target || std::abs(next - target) < target / 256) break;
    target = next;
  }
  learner_.Follow(best.plan);
  best.kept = all.peak;
  best.least = least;
  return best;
}

}  // namespace tandem::training
