#include "colocation/job_policies/turns.h"

namespace tandem {

std::vector<JobTurn> TakeTurns(std::span<const JobView* const> in_order, const JobSnapshot& snapshot, Beside beside) {
  std::vector<JobTurn> turns;
  for (const JobView& job : snapshot.jobs) turns.push_back({.lane = job.lane});
  std::ranges::sort(turns, {}, &JobTurn::lane);
  const auto [first, last] = std::ranges::unique(turns);
  turns.erase(first, last);

  double width = 0;
  bool any = false;
  for (const JobView* job : in_order) {
    const auto turn = std::ranges::lower_bound(turns, job->lane, {}, &JobTurn::lane);
    if (turn->session) continue;
    if (any && beside == Beside::kNobody) break;
    if (any && beside == Beside::kWhoFits && width + job->width > 1) continue;
    turn->session = job->session;
    width += job->width;
    any = true;
  }
  return turns;
}

}  // namespace tandem
