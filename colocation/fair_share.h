#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "colocation/queue_key.h"

namespace tandem {

class Servable;

// Requests of one model and level that have deadlines, or those that have none: each is a flow, so that neither starves
// the other, nor those of other models.
struct FlowId {
  const Servable* servable = nullptr;  // Lives as long as something of it waits; else only a key.
  std::uint64_t level = 0;
  bool patient = false;  // Without deadlines.

  friend bool operator==(const FlowId&, const FlowId&) = default;
};

// A flow that has something waiting.
struct Flow {
  FlowId id;
  double weight = 1;  // The model's, shared by its flows.
  QueueKey first;     // Its most urgent request.
  // What it has had less than its share; never negative. Borrowed from the queue.
  std::chrono::nanoseconds* behind = nullptr;
};

// A flow that is so far behind its share of the device's time goes before those that are more urgent. Long enough that
// the order of deadlines holds through any burst, short enough that a person does not take what waits for lost.
inline constexpr std::chrono::milliseconds kMostBehind{500};

// The flow that goes first because it is furthest behind its share; null when none is so far behind that it counts.
// The flows are those of one level. Pure.
[[nodiscard]] const Flow* FurthestBehind(std::span<const Flow> flows);

// A batch that is run.
struct FlowRun {
  FlowId id;  // Of its most urgent request.
  double weight = 1;
  // What its flow was behind by, when all of it was taken: it is not forgotten if more came while the batch ran.
  std::chrono::nanoseconds carried{0};
};

// A run took so long: what every flow that waits should have had of it, by its weight, it is behind by, and the one
// that ran has had it. The flows are those of its level, itself among them if more of it waits. What a flow had more
// than its share is not held against it later.
void ChargeRun(std::span<const Flow> flows, const FlowRun& ran, std::chrono::nanoseconds took);

}  // namespace tandem
