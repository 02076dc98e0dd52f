#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "colocation/queue_key.h"

namespace tandem {

class Servable;

// Requests of one model and level that have deadlines, or those that have none: each is a flow, so that neither starves
// the other, nor those of other models.
struct FlowId {
  const Servable* servable = nullptr;  // Lives as long as something of it waits; else only a key.
  std::uint64_t level = 0;
  bool patient = false;  // Without deadlines.

  friend auto operator<=>(const FlowId&, const FlowId&) = default;
};

[[nodiscard]] inline FlowId FlowOf(const Servable& servable, const QueueKey& key) {
  return {.servable = &servable, .level = key.priority, .patient = key.deadline == MonotonicTime::max()};
}

// A flow that has something waiting.
struct Flow {
  FlowId id;
  double weight = 1;  // The model's; half of it when both of its flows are there.
  QueueKey first;     // Its most urgent request.
};

// The place of a flow among those of its level, where it is added when nothing of it waits. `weight` is its model's.
std::size_t JoinFlows(std::vector<Flow>& flows, const FlowId& id, double weight);

// A flow that is so far behind its share of the device's time goes before those that are more urgent. Long enough that
// the order of deadlines holds through any burst, short enough that a person does not take what waits for lost.
inline constexpr std::chrono::milliseconds kMostBehind{500};

// A batch that is run.
struct FlowRun {
  FlowId id;                            // Of its most urgent request.
  double weight = 1;                    // Of its model.
  std::chrono::nanoseconds counted{0};  // What was counted of it when it began.
  std::chrono::nanoseconds had{0};      // Of that, what its own flow has had: no more than it was behind.
};

// What each flow has had less than its share of the device's time; never negative: what somebody had when nobody else
// wanted it is not held against him. Not thread-safe: the dispatcher guards it.
//
// A debt lasts as long as something of its flow waits. It is gone when a run of the flow ends and no more of it waits.
// When all that waited was dropped it fades, while others are run: a flow whose requests all come too late would
// otherwise begin anew with each.
class ShareLedger {
 public:
  [[nodiscard]] std::chrono::nanoseconds Behind(const FlowId& flow) const;
  // No flow is further behind.
  [[nodiscard]] std::chrono::nanoseconds most() const { return most_; }

  // The flow that goes first because it is furthest behind; null when none is so far behind that it counts. The flows
  // are those of one level.
  [[nodiscard]] const Flow* FurthestBehind(std::span<const Flow> flows) const;

  // A run begins, and is expected to take so long: what every flow that waits should have of it, by its weight, it is
  // behind by, and the one that runs has had it. Counted at once, so that other workers do not run for the same debt.
  // The flows are those of its level of which something waits; changes them.
  void Begin(std::vector<Flow>& flows, FlowRun& run, std::chrono::nanoseconds expected);
  // It has ended and took so long: counts what was not expected.
  void End(std::vector<Flow>& flows, const FlowRun& run, std::chrono::nanoseconds took);
  // The device ran something for so long: debts of flows fade of which, by `waits`, nothing waits.
  void Fade(std::chrono::nanoseconds took, const std::function<bool(const FlowId&)>& waits);
  void Forget(const FlowId& flow);
  // Nothing waits.
  void Clear();

 private:
  // So many times as long as it is, a debt lasts.
  static constexpr int kFade = 16;

  // Every flow should have had its share of `due`, and the one that runs has had `taken`; what it was behind less for
  // that.
  std::chrono::nanoseconds Count(std::vector<Flow>& flows, const FlowRun& run, std::chrono::nanoseconds due,
                                 std::chrono::nanoseconds taken);
  void FindMost();

  std::map<FlowId, std::chrono::nanoseconds> debts_;  // Above zero.
  std::chrono::nanoseconds most_{0};
};

}  // namespace tandem
