#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tandem {

// A session is named by whoever admits it; the name of a lane is never given twice.
enum class SessionId : std::uint64_t {};
enum class LaneId : std::uint64_t {};

// Whose turns a session can take: those of its own kind, which end where nothing of an iteration, or a run, is left.
enum class LaneCompany : std::uint8_t { kTraining, kServing };

// What a session, that is a model that is served or a training job, takes of a device's memory, in bytes.
struct SessionNeed {
  std::uint64_t persistent = 0;  // P: weights, optimizer state, what the framework keeps. As long as it is there.
  std::uint64_t ephemeral = 0;   // E: activations and workspaces. Within an iteration, or a run; empty between two.
  bool stays = false;            // Does not end by itself: a model that is served, a job that is paused.
  bool alone = false;            // Takes no turns with others: its lane is its own.
  LaneCompany company = LaneCompany::kTraining;

  friend bool operator==(const SessionNeed&, const SessionNeed&) = default;
};

struct LaneSession {
  SessionId id{};
  SessionNeed need;

  friend bool operator==(const LaneSession&, const LaneSession&) = default;
};

// Memory in which sessions take turns, one iteration at a time. A boundary is where one iteration has ended and the
// next has not begun: nothing is in the lane then, so only there does its length change.
struct Lane {
  LaneId id{};
  std::uint64_t length = 0;           // Now. A session with a larger E waits for the boundary.
  std::uint64_t next = 0;             // From the next boundary on: the largest E in it.
  std::vector<LaneSession> sessions;  // As they came; never empty.

  // What is to be kept free for it: it may have either length before anybody looks again.
  [[nodiscard]] std::uint64_t counted() const { return std::max(length, next); }

  friend bool operator==(const Lane&, const Lane&) = default;
};

}  // namespace tandem
