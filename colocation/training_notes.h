#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "api/base/clock.h"
#include "colocation/hold_reason.h"
#include "colocation/policy.h"
#include "profiler/flight_recorder.h"

namespace tandem {

// What the arbiter tells the flight recorder: trainers that come and go, or stand still by themselves, decisions that
// change, and what they mean to each trainer. Thread-safe; takes no lock and no memory, so it may be called under the
// arbiter's.
class TrainingNotes {
 public:
  // Borrowed; null: nothing is recorded.
  explicit TrainingNotes(FlightRecorder* recorder) : recorder_(recorder) {}

  // What is decided when a trainer comes or goes, and who is there then.
  struct Standing {
    TrainerCounts trainers;
    std::optional<HoldReason> hold;
    std::optional<HoldReason> hold_heavy;
  };
  // `job` is 0 for a trainer of none.
  void Began(MonotonicTime now, std::uint64_t trainer, int threads, const Standing& standing,
             std::int64_t job = 0) const;
  void Ended(MonotonicTime now, std::uint64_t trainer, const Standing& standing) const;
  // Nullopt: it was let on.
  void Held(MonotonicTime now, std::uint64_t trainer, std::optional<HoldReason> hold, std::int64_t job = 0) const;
  // It is paused or waits for its turn, or does not any more. `hold`: why it stands still now; nullopt: it runs.
  void Stands(MonotonicTime now, std::uint64_t trainer, std::optional<HoldReason> hold, const Standing& standing,
              std::int64_t job = 0) const;

  // What a decision was made from.
  struct Seen {
    std::int64_t requests = 0;
    TrainerCounts trainers;
    std::span<const QuotaView> quotas;
    bool learning = false;  // It is held to learn when periods begin.
  };
  void Decided(MonotonicTime now, std::optional<HoldReason> hold, std::optional<HoldReason> hold_heavy,
               const Seen& seen) const;

 private:
  FlightRecorder* const recorder_;
};

// As records hold it: 0 for none.
[[nodiscard]] constexpr std::uint8_t HoldCode(std::optional<HoldReason> hold) {
  return static_cast<std::uint8_t>(hold ? static_cast<int>(*hold) + 1 : 0);
}
[[nodiscard]] constexpr std::optional<HoldReason> HoldOf(std::uint8_t code) {
  if (code == 0) return std::nullopt;
  return static_cast<HoldReason>(code - 1);
}

}  // namespace tandem
