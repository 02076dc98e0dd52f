// How jobs take turns, and in which lanes.

#include <algorithm>
#include <set>

#include "server/jobs/supervisor.h"

namespace tandem::jobs {

TurnPlan Supervisor::PlanOf(const JobRecord& record, int threads) const {
  const auto number = static_cast<std::uint64_t>(record.id);
  const auto lane = memory_.LaneOf(record.id);
  return {.job = {.session = SessionId{number},
                  .lane = lane ? lane->lane : LaneId{number},
                  .order = number,
                  .priority = record.priority,
                  .width = std::min(1.0, static_cast<double>(threads) / std::max(1, options_.threads)),
                  .bytes = memory_.Promised(record.id)},
          .owner = record.owner,
          .grow = memory_.GrowthOf(record.id)};
}

void Supervisor::FollowLanes() {
  if (options_.turns == nullptr || options_.memory == nullptr) return;
  std::set<LaneId> used;
  for (const auto& [id, active] : active_) {
    const auto lane = memory_.LaneOf(id);
    if (!lane) continue;
    used.insert(lane->lane);
    options_.turns->SetLane(lane->lane, lane->length, /*shared=*/lane->sessions > 1);
  }
  options_.turns->CloseLanesBut(used);
}

}  // namespace tandem::jobs
