#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "colocation/arbiter_state.h"

namespace tandem::jobs {

// Tells the log what has changed of that which the server and its trainers may use: the cores (others went offline, or
// a cpuset was changed) and the CPU limits that training is paced by. What was told at the start is not told again.
// Jobs thread only.
class MachineWatch {
 public:
  // Reads what there is now: that is no change.
  explicit MachineWatch(const ArbiterState& now);

  // Whether a second has passed since it looked last.
  [[nodiscard]] bool IsDue(MonotonicTime now) const;
  void Look(const ArbiterState& state, MonotonicTime now);

 private:
  struct Trainer {
    int pid = 0;
    std::vector<int> cores;
  };
  void LookAtCores(const std::vector<TrainerState>& trainers);
  void LookAtLimits(const std::vector<ArbiterState::Quota>& quotas);

  std::optional<MonotonicTime> looked_;
  std::vector<int> cores_;
  std::map<std::int64_t, Trainer> trainers_;               // By their jobs; those without are not watched.
  std::map<std::string, std::optional<CpuLimit>> limits_;  // By their groups.
};

}  // namespace tandem::jobs
