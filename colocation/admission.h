#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "profiler/flight_events.h"
#include "profiler/latency_model.h"
#include "profiler/training_toll.h"

namespace tandem {

// What a decision to let a request in may depend on.
struct AdmissionSnapshot {
  std::string_view model;
  MonotonicTime now;
  std::optional<MonotonicTime> deadline;
  std::size_t queued = 0;        // Waiting for the device.
  std::size_t queued_model = 0;  // Of these, for the request's model.
  std::size_t max_queued = 0;
  std::size_t max_queued_model = 0;  // 0: no bound of its own.

  // Until what runs and what stands before the request in the queue is done, as far as that is known.
  std::chrono::nanoseconds work_ahead{0};
  std::optional<RunPrediction> run;  // Its own, with those that it shares it with; nullopt: not known.
};

// Worth a run to learn more: a guess, or nothing was learnt of such runs for a while. Nobody is refused for it.
[[nodiscard]] bool IsDoubtful(const RunPrediction& run, MonotonicTime now);

// By how much a request is expected to be late, and how much of that is only because runs take longer beside training.
struct Shortfall {
  std::chrono::nanoseconds late{0};
  std::chrono::nanoseconds added{0};
  bool sure = true;  // The latter; as what it was judged by.
};
// Of one that is refused by prediction: `weight` is what its own run meant to that, `alone` what such a run takes
// without training. What is ahead of it is taken to be as much longer as its own run.
[[nodiscard]] Shortfall ShortfallOf(const AdmissionSnapshot& seen, RunWeight weight, AloneTime alone);

// When a request that is refused now, by prediction or for want of room, would probably be let in with as much time
// left as it has now: 1 ms to kLongestRetry. Where there is no room, when what waits before it is done: whatever gets
// free sooner, others who ask are there to take. 0 when that is not known.
inline constexpr std::chrono::seconds kLongestRetry{30};
[[nodiscard]] std::chrono::milliseconds RetryAfter(const AdmissionSnapshot& seen, RunWeight weight);

// Decides which requests are worth computing. Pure: same arguments, same answer.
class AdmissionPolicy {
 public:
  virtual ~AdmissionPolicy() = default;
  // At arrival: whether it may wait.
  [[nodiscard]] virtual Status Admit(const AdmissionSnapshot& snapshot) const = 0;
  // What the expected time of its own run means to that.
  [[nodiscard]] virtual RunWeight WeightOf(const AdmissionSnapshot& snapshot) const = 0;
  // When its turn has come, before its deadline: whether it is computed. `run` is its own alone, if that is known.
  [[nodiscard]] virtual bool IsHopeless(MonotonicTime now, MonotonicTime deadline,
                                        const std::optional<RunPrediction>& run) const = 0;
};

// Lets in whatever finds room and is not late already. Predicts nothing.
class BoundedQueueAdmission final : public AdmissionPolicy {
 public:
  [[nodiscard]] Status Admit(const AdmissionSnapshot& snapshot) const override;
  [[nodiscard]] RunWeight WeightOf(const AdmissionSnapshot& /*snapshot*/) const override { return RunWeight::kIgnored; }
  [[nodiscard]] bool IsHopeless(MonotonicTime /*now*/, MonotonicTime /*deadline*/,
                                const std::optional<RunPrediction>& /*run*/) const override {
    return false;
  }
};

// Of these, only what is expected to be answered by its deadline; hopeless is what more likely than not would end after
// it. What has no deadline, or whose run is not known, is never refused by prediction. Its run does not count
// when nothing was learnt of such runs for a while, or what is known is a guess: or what was slow once would be refused
// for ever.
class DeadlineAdmission final : public AdmissionPolicy {
 public:
  [[nodiscard]] Status Admit(const AdmissionSnapshot& snapshot) const override;
  [[nodiscard]] RunWeight WeightOf(const AdmissionSnapshot& snapshot) const override;
  [[nodiscard]] bool IsHopeless(MonotonicTime now, MonotonicTime deadline,
                                const std::optional<RunPrediction>& run) const override;

 private:
  const BoundedQueueAdmission room_;
};

// In which ways a run whose turn has come can begin: on all threads when these are free, or on one at once.
struct RunWays {
  MonotonicTime all_free;
  std::optional<RunPrediction> wide;
  bool narrow_possible = false;
  std::optional<RunPrediction> narrow;
};
// Whether it is hopeless in each of them.
[[nodiscard]] bool IsHopeless(const AdmissionPolicy& policy, MonotonicTime now, MonotonicTime deadline,
                              const RunWays& ways);

// By name: "deadline" or "queue". kInvalidArgument lists them.
[[nodiscard]] Result<std::unique_ptr<const AdmissionPolicy>> MakeAdmission(std::string_view name);

}  // namespace tandem
