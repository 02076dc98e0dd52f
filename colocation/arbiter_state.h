#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "colocation/demand_meter.h"
#include "colocation/hold_reason.h"
#include "colocation/trainer_board.h"
#include "colocation/trainer_reins.h"
#include "profiler/cpu_limits.h"

namespace tandem {

// How long something about decisions took.
struct DecisionTimes {
  static constexpr std::array<std::chrono::microseconds, 10> kBounds = {
      std::chrono::microseconds(1),   std::chrono::microseconds(2),   std::chrono::microseconds(5),
      std::chrono::microseconds(10),  std::chrono::microseconds(20),  std::chrono::microseconds(50),
      std::chrono::microseconds(100), std::chrono::microseconds(200), std::chrono::microseconds(500),
      std::chrono::microseconds(1000)};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // Up to each bound and above the one before; the rest.
  std::chrono::nanoseconds sum{0};

  void Add(std::chrono::nanoseconds time);
  [[nodiscard]] std::uint64_t count() const;
};

// How one trainer stands, for people.
struct TrainerState {
  std::int64_t job = 0;  // That it trains; 0: none.
  int pid = 0;           // Of its process; 0: not known.
  int threads = 0;       // That it has at most.
  int ordered = 0;       // Of these, as many as it is to use; 0: all.
  Permit permit = Permit::kRun;
  HoldMeans means = HoldMeans::kNone;  // What holds it.
  std::optional<HoldReason> hold;      // Why it stands still, or is to; nullopt: it runs.
};

// What the arbiter knows and does, for people.
struct ArbiterState {
  struct Quota {
    std::string group;
    std::optional<CpuLimit> limit;  // Nullopt: there is none, or it does not bind.
    bool learning = false;          // When its periods begin is not known yet.
    std::uint64_t throttled_periods = 0;
  };
  std::string policy;
  std::int64_t pending = 0;
  std::optional<RequestDemand> demand;  // While there is a limit to heed, as of the last look.
  int threads = 0;                      // Of each trainer; 0: all that it has.
  std::vector<TrainerState> trainers;   // In the order in which they came.
  bool yields = true;                   // The kernel takes cores from all of them as soon as requests want them.
  std::optional<HoldReason> hold;       // As last decided, as the next.
  std::optional<HoldReason> hold_heavy;
  DecisionTimes decisions;    // From the first look to what was decided.
  DecisionTimes applied;      // From the first look to the last order and signal.
  std::vector<Quota> quotas;  // Of every group that has a limit or may get one, as of the last look.
};

}  // namespace tandem
