#include "runtimes/training/fit/fit_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>

namespace tandem::training {
namespace {

// A piece is no longer: more of them would cost more time than it saves memory.
constexpr std::size_t kLongest = 64;
constexpr std::size_t kLongestInParts = 16;
constexpr int kRates = 36;
constexpr double kDecades = 3;  // To each side of the rate at which a whole step is worth all that it holds.
constexpr int kSizes = 8;       // Of pieces, each twice the one before.

std::size_t Index(Retention retention) {
  return static_cast<std::size_t>(retention);
}

// Groups that become a segment together.
struct Piece {
  std::size_t first = 0;
  std::size_t end = 0;
  Retention retention = Retention::kAll;
  bool in_parts = false;
};
using Pieces = std::vector<Piece>;

// What a piece costs, and what is there while it is at work beyond what is held before it.
struct Cost {
  double seconds = 0;
  std::int64_t held = 0;
  std::int64_t peak = 0;
};

class Planner {
 public:
  explicit Planner(const FitProblem& problem) : problem_(problem), groups_(problem.groups) {
    for (const FitGroup& group : groups_) {
      largest_ = std::max(largest_, group.held[Index(Retention::kAll)]);
      total_ += std::max<std::int64_t>(group.held[Index(Retention::kAll)], 0);
    }
    whole_.resize(groups_.size());
    in_parts_.resize(groups_.size());
    for (std::size_t first = 0; first < groups_.size(); ++first) {
      for (std::size_t more = 0; more < std::min(groups_.size() - first, kLongest); ++more) {
        Piece piece{.first = first, .end = first + 1 + more, .retention = Retention::kNothing};
        whole_[first][more] = Reckon(piece);
        piece.in_parts = true;
        if (more < kLongestInParts) in_parts_[first][more] = Reckon(piece);
      }
    }
  }

  // Shows every plan that is looked at.
  void Visit(const std::function<void(const Pieces&)>& visit, const std::function<bool(double)>& wanted) const {
    for (int size = 0; size < kSizes; ++size) {
      const std::int64_t most = size + 1 == kSizes ? std::numeric_limits<std::int64_t>::max() : largest_ << size;
      Pieces before = BestAt(0, most);
      visit(before);
      for (int rate = 0; rate <= kRates; ++rate) {
        Pieces pieces = BestAt(RateAt(rate), most);
        VisitMixed(pieces, before, visit, wanted);
        visit(pieces);
        before = std::move(pieces);
      }
    }
  }

  [[nodiscard]] double SecondsOf(const Pieces& pieces) const {
    double seconds = 0;
    for (const Piece& piece : pieces) seconds += CostOf(piece).seconds;
    return seconds;
  }
  [[nodiscard]] std::int64_t PeakOf(const Pieces& pieces) const {
    std::int64_t held = 0;
    std::int64_t peak = 0;
    for (const Piece& piece : pieces) {
      const Cost cost = CostOf(piece);
      peak = std::max(peak, held + cost.peak);
      held += cost.held;
    }
    return peak;
  }
  [[nodiscard]] FitPlan PlanOf(const Pieces& pieces) const;

 private:
  // Seconds that a byte is worth.
  [[nodiscard]] double RateAt(int rate) const {
    const double even = problem_.step_seconds / static_cast<double>(std::max<std::int64_t>(total_, 1));
    return even * std::pow(10.0, kDecades * (2.0 * rate / kRates - 1));
  }
  [[nodiscard]] Cost CostOf(const Piece& piece) const {
    if (piece.retention != Retention::kNothing) return Reckon(piece);
    const std::size_t more = piece.end - piece.first - 1;
    return piece.in_parts ? in_parts_[piece.first][more] : whole_[piece.first][more];
  }
  [[nodiscard]] Cost Reckon(const Piece& piece) const;
  [[nodiscard]] Pieces BestAt(double rate, std::int64_t most) const;
  // Those that begin as the one and go on as the other.
  void VisitMixed(const Pieces& head, const Pieces& tail, const std::function<void(const Pieces&)>& visit,
                  const std::function<bool(double)>& wanted) const;

  const FitProblem& problem_;
  const std::vector<FitGroup>& groups_;
  std::int64_t largest_ = 1;
  std::int64_t total_ = 0;
  // Of what is computed again as a whole, by the first group and how many follow it: they are asked for often.
  std::vector<std::array<Cost, kLongest>> whole_;
  std::vector<std::array<Cost, kLongestInParts>> in_parts_;
};

Cost Planner::Reckon(const Piece& piece) const {
  constexpr std::size_t kAll = static_cast<std::size_t>(Retention::kAll);
  Cost cost;
  std::int64_t whole = 0;  // What its groups hold once they are computed again.
  double so_far = 0;
  for (std::size_t i = piece.first; i < piece.end; ++i) {
    const FitGroup& group = groups_[i];
    // While it is computed for the first time, and again: then with what the gradients have by then.
    const std::int64_t again = piece.retention == Retention::kAll ? 0 : groups_[piece.end - 1].gradients;
    const std::int64_t behind = piece.in_parts ? group.entry : whole;
    cost.peak = std::max(cost.peak, cost.held + group.forward);
    if (piece.retention != Retention::kAll) cost.peak = std::max(cost.peak, behind + group.forward + again);
    cost.peak = std::max(cost.peak, behind + group.held[kAll] + group.gradients + group.backward);
    whole += group.held[kAll];
    cost.held += group.held[Index(piece.retention)];
    if (i > piece.first) cost.held -= group.entry;
    cost.held = std::max<std::int64_t>(cost.held, 0);
    so_far += group.seconds[Index(piece.retention)];
    cost.seconds = piece.in_parts ? cost.seconds + so_far : so_far;
  }
  return cost;
}

Pieces Planner::BestAt(double rate, std::int64_t most) const {
  struct Best {
    double value = std::numeric_limits<double>::infinity();
    Piece piece;
  };
  std::vector<Best> best(groups_.size() + 1);
  best[0].value = 0;
  const auto consider = [&](const Piece& piece) {
    const Cost cost = CostOf(piece);
    const double value = best[piece.first].value + cost.seconds + rate * static_cast<double>(cost.held);
    if (value < best[piece.end].value) best[piece.end] = {.value = value, .piece = piece};
  };
  for (std::size_t first = 0; first < groups_.size(); ++first) {
    for (const Retention retention : {Retention::kAll, Retention::kCostly}) {
      consider({.first = first, .end = first + 1, .retention = retention});
    }
    std::int64_t whole = 0;
    for (std::size_t end = first + 1; end <= std::min(groups_.size(), first + kLongest); ++end) {
      whole += groups_[end - 1].held[Index(Retention::kAll)];
      const bool in_parts = end > first + 1 && whole > most;
      if (in_parts && end > first + kLongestInParts) break;
      consider({.first = first, .end = end, .retention = Retention::kNothing, .in_parts = in_parts});
    }
  }
  Pieces pieces;
  for (std::size_t end = groups_.size(); end > 0; end = pieces.back().first) pieces.push_back(best[end].piece);
  std::ranges::reverse(pieces);
  return pieces;
}

void Planner::VisitMixed(const Pieces& head, const Pieces& tail, const std::function<void(const Pieces&)>& visit,
                         const std::function<bool(double)>& wanted) const {
  std::vector<double> of_head(groups_.size() + 1, -1);
  double seconds = 0;
  for (const Piece& piece : head) of_head[piece.end] = seconds += CostOf(piece).seconds;
  double rest = SecondsOf(tail);
  for (const Piece& piece : tail) {
    rest -= CostOf(piece).seconds;
    if (of_head[piece.end] < 0 || !wanted(of_head[piece.end] + rest)) continue;
    Pieces mixed;
    std::ranges::copy_if(head, std::back_inserter(mixed), [&](const Piece& each) { return each.end <= piece.end; });
    std::ranges::copy_if(tail, std::back_inserter(mixed), [&](const Piece& each) { return each.first >= piece.end; });
    visit(mixed);
  }
}

FitPlan Planner::PlanOf(const Pieces& pieces) const {
  FitPlan plan;
  for (const Piece& piece : pieces) {
    if (piece.retention == Retention::kAll) continue;
    FitSegment segment{.begin = groups_[piece.first].begin,
                       .end = groups_[piece.end - 1].end,
                       .retention = piece.retention,
                       .parts = {}};
    for (std::size_t i = piece.first; piece.in_parts && i < piece.end; ++i) segment.parts.push_back(groups_[i].begin);
    if (segment.begin < segment.end) plan.segments.push_back(std::move(segment));
  }
  return plan;
}

}  // namespace

std::optional<FitChoice> ChoosePlan(const FitProblem& problem, std::uint64_t bound) {
  const Planner planner(problem);
  std::optional<FitChoice> choice;
  Pieces chosen;
  const auto wanted = [&](double seconds) { return !choice || seconds < choice->added_seconds; };
  const auto visit = [&](const Pieces& pieces) {
    const double seconds = planner.SecondsOf(pieces);
    if (!wanted(seconds)) return;
    const auto peak = static_cast<std::uint64_t>(planner.PeakOf(pieces));
    if (peak > bound) return;
    choice = FitChoice{.plan = {}, .peak = peak, .added_seconds = seconds};
    chosen = pieces;
  };
  planner.Visit(visit, wanted);
  if (choice) choice->plan = planner.PlanOf(chosen);
  return choice;
}

FitChoice SmallestPlan(const FitProblem& problem) {
  const Planner planner(problem);
  FitChoice choice{.plan = {}, .peak = std::numeric_limits<std::uint64_t>::max(), .added_seconds = 0};
  Pieces chosen;
  planner.Visit(
      [&](const Pieces& pieces) {
        const auto peak = static_cast<std::uint64_t>(planner.PeakOf(pieces));
        const double seconds = planner.SecondsOf(pieces);
        if (peak > choice.peak || (peak == choice.peak && seconds >= choice.added_seconds)) return;
        choice = {.plan = {}, .peak = peak, .added_seconds = seconds};
        chosen = pieces;
      },
      [](double) { return true; });
  choice.plan = planner.PlanOf(chosen);
  return choice;
}

}  // namespace tandem::training
