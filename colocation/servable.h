#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/inference_session.h"
#include "colocation/model_bits.h"
#include "colocation/request_habits.h"
#include "colocation/run_width.h"
#include "profiler/latency_model.h"
#include "profiler/model_statistics.h"
#include "profiler/run_bounds.h"
#include "profiler/short_runs.h"
#include "profiler/training_toll.h"

namespace tandem {

// How requests for a model wait and are joined; from the model's configuration.
struct BatchSettings {
  std::int64_t max_batch_size = 0;  // 0: the graph has no batch dimension; requests run one by one.
  bool dynamic = false;             // Requests may share a run.
  std::vector<std::int64_t> preferred_sizes;
  std::chrono::microseconds max_queue_delay{0};  // How long a run may wait for a preferred size; 0: never wait.
  std::uint32_t priority_levels = 0;             // 0: any priority is taken as it is.
  std::uint32_t default_priority = 0;
  double weight = 1;                             // Of the device's time, beside other models of its level.
  std::uint32_t max_queue_size = 0;              // Requests of this model that may wait; 0: only the device's bound.
  std::chrono::microseconds default_timeout{0};  // default_queue_policy; 0: none.
};

// One loaded version of a model. Constant once it is served but for what is learnt of its runs and requests. Shared by
// the repository and by every request that is under way, so that an unloaded version lives until its last request is
// answered.
class Servable {
 public:
  // Class names of an output, by the output's name.
  using Labels = std::map<std::string, std::vector<std::string>, std::less<>>;

  Servable(std::string name, std::int64_t version, ModelSignature signature, BatchSettings batching,
           std::optional<std::chrono::microseconds> slo, std::unique_ptr<InferenceSession> session, Labels labels = {})
      : name_(std::move(name)),
        version_(version),
        version_text_(std::to_string(version)),
        signature_(std::move(signature)),
        batching_(std::move(batching)),
        slo_(slo),
        labels_(std::move(labels)),
        session_(std::move(session)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t version() const { return version_; }
  [[nodiscard]] const std::string& version_text() const { return version_text_; }
  // As served: names, types and shapes including the batch dimension (-1 when max_batch_size > 0).
  [[nodiscard]] const ModelSignature& signature() const { return signature_; }
  [[nodiscard]] const BatchSettings& batching() const { return batching_; }
  // The model's default SLO, counted from arrival.
  [[nodiscard]] std::optional<std::chrono::microseconds> slo() const { return slo_; }
  [[nodiscard]] const Labels& labels() const { return labels_; }
  [[nodiscard]] InferenceSession& session(RunWidth width = RunWidth::kAll) const {
    return width == RunWidth::kOne ? *narrow_session_ : *session_;
  }
  // The same on one thread, of so many that the other uses. Before anybody asks for it; without it the model is only
  // run on all threads.
  void AddNarrow(std::unique_ptr<InferenceSession> session, int threads) {
    narrow_session_ = std::move(session);
    threads_ = threads;
  }
  [[nodiscard]] bool can_be_narrow() const { return narrow_session_ != nullptr; }
  [[nodiscard]] ModelStatistics& statistics() const { return statistics_; }
  [[nodiscard]] ShortRuns& short_runs() const { return short_runs_; }
  [[nodiscard]] LatencyModel& latency(RunWidth width = RunWidth::kAll) const { return times_[Index(width)].all; }
  // What a run is expected to take, by those of its width and, where these are older, by those of the other.
  [[nodiscard]] std::optional<RunPrediction> Predict(std::int64_t elements, RunWidth width = RunWidth::kAll) const;
  [[nodiscard]] RunBounds& run_bounds() const { return run_bounds_; }
  // Of runs that were not beside training.
  [[nodiscard]] LatencyModel& alone(RunWidth width = RunWidth::kAll) const { return times_[Index(width)].alone; }
  // So long what was learnt alone is compared with, whatever runs take now: a machine, its neighbours and what is asked
  // of a model change within minutes, and who looks at the last five must not find training blamed for that.
  static constexpr std::chrono::minutes kAloneHolds{5};
  // What a run typically takes without training. No more than with it: what was learnt alone may be of another time, or
  // a guess.
  [[nodiscard]] AloneTime Alone(std::int64_t elements, MonotonicTime now, RunWidth width = RunWidth::kAll) const;
  // Runs that ended well, by their width.
  void CountRun(RunWidth width) const { runs_[Index(width)].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t runs(RunWidth width) const { return runs_[Index(width)].load(std::memory_order_relaxed); }
  [[nodiscard]] RequestHabits& habits() const { return *habits_; }
  // Those of the model's other versions. Before anybody asks for this one.
  void ShareHabits(std::shared_ptr<RequestHabits> habits) { habits_ = std::move(habits); }
  // By which the arbiter tells its requests from those of other models. Before anybody asks for it.
  void SetModelBit(ModelBit bit) { model_bit_ = bit; }
  [[nodiscard]] ModelBit model_bit() const { return model_bit_; }
  // What its runs take says nothing of requests: it is looked at. Before anybody asks for it.
  void LeaveUncounted() { counted_ = false; }
  [[nodiscard]] bool counted() const { return counted_; }

 private:
  struct Times {
    LatencyModel all;
    LatencyModel alone;  // Of these, without training.
  };
  static constexpr std::size_t kWidths = 2;
  [[nodiscard]] static constexpr std::size_t Index(RunWidth width) { return static_cast<std::size_t>(width); }

  const std::string name_;
  const std::int64_t version_;
  const std::string version_text_;
  const ModelSignature signature_;
  const BatchSettings batching_;
  const std::optional<std::chrono::microseconds> slo_;
  const Labels labels_;
  const std::unique_ptr<InferenceSession> session_;
  std::unique_ptr<InferenceSession> narrow_session_;  // May be null.
  int threads_ = 1;                                   // Of the other, if there is this one.
  mutable ModelStatistics statistics_;
  mutable ShortRuns short_runs_;
  mutable std::array<Times, kWidths> times_;
  mutable std::array<std::atomic<std::uint64_t>, kWidths> runs_{};
  mutable RunBounds run_bounds_;
  std::shared_ptr<RequestHabits> habits_ = std::make_shared<RequestHabits>();  // Shared by all versions of the model.
  bool counted_ = true;
  ModelBit model_bit_ = kAnyModel;
};

inline std::optional<RunPrediction> Servable::Predict(std::int64_t elements, RunWidth width) const {
  auto run = latency(width).Predict(elements);
  if (!run || !can_be_narrow()) return run;
  const RunWidth other = width == RunWidth::kAll ? RunWidth::kOne : RunWidth::kAll;
  if (const auto known = latency(other).Predict(elements)) BoundByOther(*run, width, *known, threads_);
  return run;
}

inline AloneTime Servable::Alone(std::int64_t elements, MonotonicTime now, RunWidth width) const {
  const LatencyModel& without_training = alone(width);
  const auto all = latency(width).Predict(elements);
  const auto alone = without_training.Predict(elements);
  if (!all || !alone) return {.typical = all ? all->typical : std::chrono::nanoseconds(0), .sure = false};
  // Training makes no run shorter: while most are as short as they were alone, that still holds.
  const bool confirmed = all->typical <= alone->typical + alone->typical / 4;
  return {.typical = std::min(all->typical, alone->typical),
          .sure = confirmed || now - without_training.newest() <= kAloneHolds};
}

}  // namespace tandem
