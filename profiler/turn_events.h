#pragma once

#include <cstdint>
#include <optional>

#include "api/base/clock.h"
#include "profiler/flight_events.h"
#include "profiler/trainer_counts.h"

// What the flight recorder keeps of who may train: pauses and turns. The rest is in flight_events.h.
namespace tandem {

// One trainer began to stand still whatever is decided, as it is paused or waits for its turn, for another of these
// reasons, or for none of them any more.
struct TrainerStands {
  static constexpr FlightKind kKind = FlightKind::kTrainerStands;
  MonotonicTime at;
  std::uint64_t trainer = 0;
  std::uint8_t hold = 0;   // Why it stands still now, as in TrainerHeld; 0: it runs.
  std::int64_t job = 0;    // As in TrainerHeld.
  TrainerCounts trainers;  // With it, as it stands now.
  // What was decided before, and still holds.
  std::uint8_t decided_hold = 0;
  std::uint8_t decided_hold_heavy = 0;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TrainerStands Unpack(const FlightRecord& record);
};

// A job was given its turn in a lane, which nobody else has meanwhile.
struct TurnBegan {
  static constexpr FlightKind kKind = FlightKind::kTurnBegan;
  MonotonicTime at;
  std::uint64_t job = 0;
  std::uint64_t lane = 0;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TurnBegan Unpack(const FlightRecord& record);
};

// It came to the boundary at which it left the lane, or has ended. With the beginning, which may be overwritten.
struct TurnEnded {
  static constexpr FlightKind kKind = FlightKind::kTurnEnded;
  MonotonicTime at;
  std::uint64_t job = 0;
  std::uint64_t lane = 0;
  MonotonicTime began;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TurnEnded Unpack(const FlightRecord& record);
};

}  // namespace tandem
