#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "profiler/client_id.h"
#include "profiler/record_ring.h"
#include "profiler/trainer_counts.h"

// What the flight recorder keeps, each as a struct that packs itself into a record. Times that are not known, and the
// like, are nullopt.
namespace tandem {

enum class FlightKind : std::uint8_t {
  kRequestArrived = 1,
  kRequestAdmission,
  kRequestJoined,
  kRequestAnswered,
  kBatchBegan,
  kBatchEnded,
  kTrainingDecision,
  kTrainerBegan,
  kTrainerEnded,
  kTrainerHeld,
  kTrainerStands,  // This and the next are in turn_events.h.
  kTurnBegan,
  kTurnEnded,
};
// From here on they are about training, and from there on about turns.
inline constexpr FlightKind kFirstOfTraining = FlightKind::kTrainingDecision;
inline constexpr FlightKind kFirstOfTurns = FlightKind::kTurnBegan;

// "r-17": as answers, the log and calls name a request that the server has numbered.
[[nodiscard]] std::string RequestName(std::uint64_t number);

struct RequestArrived {
  static constexpr FlightKind kKind = FlightKind::kRequestArrived;
  MonotonicTime at;
  std::uint64_t request = 0;
  std::uint32_t model = 0;         // 0: no model of that name is served, or there is no room for its name.
  bool waits_for_company = false;  // Runs of its model may be put off for others to join.
  ClientId id;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static RequestArrived Unpack(const FlightRecord& record);
};

// What was decided of a request when it came.
enum class Admitted : std::uint8_t {
  kQueued,
  kAtOnce,  // It was run by the thread that had brought it.
  // Refused:
  kStopping,
  kGone,       // Its client.
  kLate,       // Its deadline had passed.
  kModelFull,  // The queue of its model.
  kFull,       // The queue.
  kHopeless,   // It is not expected in time.
  // Refused before anything was known of queues:
  kNoModel,    // None of that name is served.
  kNoVersion,  // Its model is, but not in that version.
  kNotReady,   // Its model.
  kUnfit,      // It does not fit its model, or names what is not there.
  kNoMemory,   // To prepare it.
};

// What the expected time of its own run meant to that.
enum class RunWeight : std::uint8_t {
  kCounted,
  kDoubtful,  // Not counted: a guess, or learnt too long ago.
  kIgnored,   // Such times are never asked for.
};

struct RequestAdmission {
  static constexpr FlightKind kKind = FlightKind::kRequestAdmission;
  MonotonicTime at;
  std::uint64_t request = 0;
  Admitted verdict = Admitted::kQueued;
  std::optional<std::chrono::nanoseconds> left;  // Until its deadline; nullopt: it has none.
  std::chrono::nanoseconds ahead{0};             // Of work, as far as known. Only with a deadline.
  std::optional<std::chrono::nanoseconds> run;   // Its own takes no longer, most likely. Only with a deadline.
  RunWeight weight = RunWeight::kCounted;
  std::int64_t waiting = 0;   // Other requests.
  std::int64_t elements = 1;  // Up to 65535.

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static RequestAdmission Unpack(const FlightRecord& record);
};

struct RequestJoined {
  static constexpr FlightKind kKind = FlightKind::kRequestJoined;
  MonotonicTime at;
  std::uint64_t request = 0;
  std::uint64_t batch = 0;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static RequestJoined Unpack(const FlightRecord& record);
};

struct RequestAnswered {
  static constexpr FlightKind kKind = FlightKind::kRequestAnswered;
  MonotonicTime at;
  std::uint64_t request = 0;
  std::uint8_t outcome = 0;        // A RequestOutcome.
  std::uint8_t slo = 0;            // A SloVerdict.
  std::uint8_t cause = 0;          // A MissCause.
  std::optional<ErrorCode> error;  // Nullopt: it was answered.
  std::optional<MonotonicTime> deadline;
  std::optional<std::chrono::nanoseconds> added;  // By training, at most. Only with a cause.

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static RequestAnswered Unpack(const FlightRecord& record);
};

// Which thread runs a batch: one that brought a request, and no worker.
inline constexpr std::uint16_t kFrontEnd = std::numeric_limits<std::uint16_t>::max();

struct BatchBegan {
  static constexpr FlightKind kKind = FlightKind::kBatchBegan;
  MonotonicTime at;
  std::uint64_t batch = 0;
  std::uint32_t model = 0;
  std::int64_t version = 0;
  std::int64_t elements = 0;
  std::int64_t requests = 0;
  std::uint16_t worker = 0;
  bool narrow = false;     // On one thread.
  bool exclusive = false;  // No other worker runs anything meanwhile.
  std::optional<std::chrono::nanoseconds> expected;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static BatchBegan Unpack(const FlightRecord& record);
};

// With what is needed of its beginning, which may be overwritten.
struct BatchEnded {
  static constexpr FlightKind kKind = FlightKind::kBatchEnded;
  MonotonicTime at;
  std::uint64_t batch = 0;
  std::optional<ErrorCode> error;
  std::uint32_t model = 0;
  std::int64_t version = 0;
  std::int64_t elements = 0;
  std::int64_t requests = 0;
  std::uint16_t worker = 0;
  bool narrow = false;
  bool exclusive = false;
  std::optional<MonotonicTime> began;  // Nullopt: nothing is known of it, and the fields above say nothing.

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static BatchEnded Unpack(const FlightRecord& record);
};

// Training runs, or is held, from now on.
struct TrainingDecision {
  static constexpr FlightKind kKind = FlightKind::kTrainingDecision;
  MonotonicTime at;
  std::uint8_t hold = 0;        // 0: it runs; else a HoldReason and 1.
  std::uint8_t hold_heavy = 0;  // The same for heavy operators.
  bool learning = false;        // It is held to learn when periods of a limit begin.
  std::int64_t requests = 0;    // Under way.
  TrainerCounts trainers;
  std::optional<std::chrono::nanoseconds> quota_left;  // CPU time of the period, where one is short.
  std::optional<std::chrono::nanoseconds> until_refill;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TrainingDecision Unpack(const FlightRecord& record);
};

struct TrainerBegan {
  static constexpr FlightKind kKind = FlightKind::kTrainerBegan;
  MonotonicTime at;
  std::uint64_t trainer = 0;
  std::int64_t threads = 0;
  TrainerCounts trainers;  // With it.
  std::int64_t job = 0;    // That it trains; 0: none.
  // What was decided before, and still holds.
  std::uint8_t hold = 0;
  std::uint8_t hold_heavy = 0;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TrainerBegan Unpack(const FlightRecord& record);
};

struct TrainerEnded {
  static constexpr FlightKind kKind = FlightKind::kTrainerEnded;
  MonotonicTime at;
  std::uint64_t trainer = 0;
  TrainerCounts trainers;  // That are left.
  // As above.
  std::uint8_t hold = 0;
  std::uint8_t hold_heavy = 0;

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TrainerEnded Unpack(const FlightRecord& record);
};

// One trainer was stopped, or let on, as was decided.
struct TrainerHeld {
  static constexpr FlightKind kKind = FlightKind::kTrainerHeld;
  MonotonicTime at;
  std::uint64_t trainer = 0;
  std::uint8_t hold = 0;  // As in TrainingDecision.
  std::int64_t job = 0;   // As in TrainerBegan, whose record may be overwritten.

  [[nodiscard]] FlightRecord Pack() const noexcept;
  [[nodiscard]] static TrainerHeld Unpack(const FlightRecord& record);
};

// The event that a record is, if it is one of that kind.
template <typename Event>
[[nodiscard]] std::optional<Event> As(const FlightRecord& record) {
  if (record.kind != static_cast<std::uint8_t>(Event::kKind)) return std::nullopt;
  return Event::Unpack(record);
}

}  // namespace tandem
