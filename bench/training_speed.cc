// The kinds "training_rate", "training_checkpoint" and "training_gate".

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <ranges>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "api/base/training_job.h"
#include "bench/alternating_turns.h"
#include "bench/training_kinds.h"
#include "bench/training_side.h"

namespace tandem::bench {
namespace {

constexpr std::int64_t kAnySteps = std::numeric_limits<std::int32_t>::max();
constexpr double kAnyTime = 1e6;
constexpr int kMostSteps = 1000;
constexpr int kTurnsOfGate = 20;  // With it, and as many without.
constexpr const char* kSides[] = {"tandem", "libtorch", "libtorch_heap"};

// What a side has done in a round.
struct RunningSide {
  std::string name;
  std::unique_ptr<TrainingSide> process;
  std::int64_t steps = 0;
  double seconds = 0;
};

class TrainingRate final : public Measurement {
 public:
  explicit TrainingRate(TrainedNetwork trained) : trained_(std::move(trained)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> names;
    for (const char* side : kSides) std::ranges::move(SeriesOf(side), std::back_inserter(names));
    return names;
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  static std::vector<std::string> SeriesOf(const std::string& side) { return {side + ".rate", side + ".memory"}; }

  const TrainedNetwork trained_;
};

// Two turns of each side, there and back, so that a machine that grows slower hits all alike.
Status TakeTwoTurns(const BenchContext& context, std::vector<RunningSide>& sides) {
  const double window = std::chrono::duration<double>(context.pace.window).count();
  const auto take = [&](RunningSide& side) -> Status {
    TANDEM_TRY(context.CheckStop());
    TANDEM_ASSIGN(const Turn turn, side.process->Take(window, kAnySteps));
    side.steps += turn.steps;
    side.seconds += turn.seconds;
    return {};
  };
  for (RunningSide& side : sides) TANDEM_TRY(take(side));
  for (RunningSide& side : std::views::reverse(sides)) TANDEM_TRY(take(side));
  return {};
}

// Each round has processes of its own: how fast a process is and how much it holds depends on where its memory happens
// to lie, and that luck belongs into the spread.
Result<SeriesMap> TrainingRate::Run(BenchContext& context, const std::set<std::string>& wanted) const {
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("training {}: round {} of {}", trained_.network, round + 1, context.pace.rounds));
    std::vector<RunningSide> sides;
    for (const char* name : kSides) {
      if (std::ranges::none_of(SeriesOf(name), [&](const auto& of) { return wanted.contains(of); })) continue;
      TANDEM_TRY(context.CheckStop());
      TANDEM_ASSIGN(auto process, TrainingSide::Start(context, name, trained_, 0));
      sides.push_back({.name = name, .process = std::move(process)});
    }
    if (round % 2 == 1) std::ranges::reverse(sides);
    TANDEM_TRY(TakeTwoTurns(context, sides));
    for (const RunningSide& side : sides) {
      TANDEM_ASSIGN(const auto peak, side.process->PeakBytes());
      series[side.name + ".rate"].samples.push_back(static_cast<double>(side.steps) / side.seconds);
      series[side.name + ".memory"].samples.push_back(static_cast<double>(peak));
    }
  }
  return series;
}

class TrainingCheckpoint final : public Measurement {
 public:
  TrainingCheckpoint(TrainedNetwork trained, int steps) : trained_(std::move(trained)), steps_(steps) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    return {"step", "stall", "stall_share", "interval_share"};
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const TrainedNetwork trained_;
  const int steps_;
};

// In one process: two of the very same trainer differ by more than a checkpoint costs.
Result<SeriesMap> TrainingCheckpoint::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  TANDEM_ASSIGN(const auto side, TrainingSide::Start(context, "tandem", trained_, 2 * steps_));
  // One step is done. With these every second turn begins with a step that a checkpoint follows.
  TANDEM_TRY(side->Take(kAnyTime, steps_ - 2));
  std::vector<double> turns;
  const int all = 2 * context.pace.rounds + 1;
  for (int i = 0; i < all; ++i) {
    context.say(Format("checkpoints of {}: turn {} of {}", trained_.network, i + 1, all));
    TANDEM_TRY(context.CheckStop());
    TANDEM_ASSIGN(const Turn turn, side->Take(kAnyTime, steps_));
    turns.push_back(turn.seconds);
  }
  SeriesMap series;
  for (const TurnCost& one : CostsOfEveryOther(turns)) {
    const double step = one.without / steps_;
    series["step"].samples.push_back(step);
    series["stall"].samples.push_back(one.more);
    series["stall_share"].samples.push_back(one.more / step);
    series["interval_share"].samples.push_back(one.more / CheckpointSpec{}.every_seconds);
  }
  return series;
}

class TrainingGate final : public Measurement {
 public:
  TrainingGate(TrainedNetwork trained, int steps) : trained_(std::move(trained)), steps_(steps) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"cost"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const TrainedNetwork trained_;
  const int steps_;
};

Result<SeriesMap> TrainingGate::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  TANDEM_ASSIGN(const auto side, TrainingSide::Start(context, "tandem_gated", trained_, 0));
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(
        Format("the gate before operators of {}: round {} of {}", trained_.network, round + 1, context.pace.rounds));
    // Of many short turns the median: what else the machine does hits few of them.
    std::vector<double> turns;
    for (int i = 0; i < 2 * kTurnsOfGate; ++i) {
      TANDEM_TRY(context.CheckStop());
      TANDEM_ASSIGN(const Turn turn, side->Take(kAnyTime, steps_));
      turns.push_back(turn.seconds);
    }
    std::vector<double> shares;
    for (const TurnCost& one : CostsOfEveryOther(turns)) shares.push_back(one.more / one.without);
    const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
    std::ranges::nth_element(shares, middle);
    series["cost"].samples.push_back(*middle);
  }
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseTrainingRate(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(TrainedNetwork trained, ParseTrainedNetwork(fields));
  return std::make_unique<TrainingRate>(std::move(trained));
}

Result<std::unique_ptr<Measurement>> ParseTrainingCheckpoint(JsonFields& fields,
                                                             const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(TrainedNetwork trained, ParseTrainedNetwork(fields));
  TANDEM_ASSIGN(const int steps, fields.Whole("steps", 3, kMostSteps));
  return std::make_unique<TrainingCheckpoint>(std::move(trained), steps);
}

Result<std::unique_ptr<Measurement>> ParseTrainingGate(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(TrainedNetwork trained, ParseTrainedNetwork(fields));
  TANDEM_ASSIGN(const int steps, fields.Whole("steps", 1, kMostSteps));
  return std::make_unique<TrainingGate>(std::move(trained), steps);
}

}  // namespace tandem::bench
