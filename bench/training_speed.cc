// The kinds "training_rate" and "training_checkpoint".

#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "api/base/training_job.h"
#include "bench/interleave.h"
#include "bench/training_kinds.h"
#include "bench/training_side.h"

namespace tandem::bench {
namespace {

constexpr std::int64_t kAnySteps = std::numeric_limits<std::int32_t>::max();
constexpr double kAnyTime = 1e6;
constexpr int kMostSteps = 1000;

class TrainingRate final : public Measurement {
 public:
  explicit TrainingRate(TrainedNetwork trained) : trained_(std::move(trained)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    return {"tandem.rate",     "tandem.memory",      "libtorch.rate",
            "libtorch.memory", "libtorch_heap.rate", "libtorch_heap.memory"};
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const TrainedNetwork trained_;
};

Result<SeriesMap> TrainingRate::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const std::string what = Format("training {}", trained_.network);
  context.say(what);
  const double window = std::chrono::duration<double>(context.pace.window).count();
  std::vector<std::unique_ptr<TrainingSide>> processes;
  std::vector<Side> sides;
  for (const char* name : {"tandem", "libtorch", "libtorch_heap"}) {
    TANDEM_ASSIGN(auto process, TrainingSide::Start(context, name, trained_, 0));
    const TrainingSide& side = *processes.emplace_back(std::move(process));
    sides.push_back({.name = name, .sample = [&side, window]() -> Result<Figures> {
                       TANDEM_ASSIGN(const Turn turn, side.Take(window, kAnySteps));
                       TANDEM_ASSIGN(const auto peak, side.PeakBytes());
                       return Figures{{"rate", static_cast<double>(turn.steps) / turn.seconds},
                                      {"memory", static_cast<double>(peak)}};
                     }});
  }
  return Interleave(context, what, sides);
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

Result<SeriesMap> TrainingCheckpoint::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const std::string what = Format("checkpoints of {}", trained_.network);
  context.say(what);
  TANDEM_ASSIGN(const auto plain, TrainingSide::Start(context, "tandem", trained_, 0));
  TANDEM_ASSIGN(const auto saving, TrainingSide::Start(context, "tandem", trained_, steps_));
  // The first step is done: with these the checkpoint follows the first step of each turn.
  for (const TrainingSide* side : {plain.get(), saving.get()}) TANDEM_TRY(side->Take(kAnyTime, steps_ - 2));
  const auto sample = [&](const TrainingSide& side) -> Result<Figures> {
    TANDEM_ASSIGN(const Turn turn, side.Take(kAnyTime, steps_));
    return Figures{{"time", turn.seconds}};
  };
  TANDEM_ASSIGN(SeriesMap times, Interleave(context, what,
                                            {{.name = "plain", .sample = [&] { return sample(*plain); }},
                                             {.name = "saving", .sample = [&] { return sample(*saving); }}}));
  SeriesMap series;
  const std::vector<double>& without = times["plain.time"].samples;
  const std::vector<double>& with = times["saving.time"].samples;
  for (std::size_t round = 0; round < without.size(); ++round) {
    const double step = without[round] / steps_;
    const double stall = with[round] - without[round];
    series["step"].samples.push_back(step);
    series["stall"].samples.push_back(stall);
    series["stall_share"].samples.push_back(stall / step);
    series["interval_share"].samples.push_back(stall / CheckpointSpec{}.every_seconds);
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

}  // namespace tandem::bench
