#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/device_budget.h"
#include "memory/lane.h"
#include "memory/lane_safety.h"

namespace tandem {

enum class MemoryKind : std::uint8_t {
  kServer,  // What the server needs whatever it serves: buffers of its front ends, a reserve.
  kModel,   // A version that is served.
  kRuns,    // Runs of models on one more worker, beside those in the models' own lane.
  kJob,     // A training job with a trainer.
};

// "server", "model", "runs", "job".
[[nodiscard]] std::string_view MemoryKindName(MemoryKind kind);

// Who has memory, or waits for it.
struct MemorySession {
  SessionId id{};
  MemoryKind kind = MemoryKind::kServer;
  std::string name;  // "digits version 1", "job 7".
  SessionNeed need;  // What it is promised.
  std::optional<std::uint64_t> measured;
  std::optional<LaneId> lane;  // Where its E is, if it has any.
};

struct WaitingSession {
  MemorySession session;
  int overtaken = 0;
  std::string reason;  // Why it waits, in words.
};

// All that is known of a device's memory, at one moment.
struct MemoryMap {
  DeviceBudget budget;
  LaneUse use;
  std::uint64_t free = 0;
  std::uint64_t overhang = 0;           // So much more is in use than the budget has.
  std::vector<MemorySession> sessions;  // The oldest first.
  std::vector<Lane> lanes;              // Those that have a length.
  std::vector<WaitingSession> waiting;  // The first to come first.
  std::optional<SessionId> kept_for;    // What becomes free is kept for it.

  // What a newcomer can have.
  [[nodiscard]] std::uint64_t headroom() const { return overhang > 0 || kept_for ? 0 : free; }
  // P of all of that kind.
  [[nodiscard]] std::uint64_t Persistent(MemoryKind kind) const;
};

}  // namespace tandem
