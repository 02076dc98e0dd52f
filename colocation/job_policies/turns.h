#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "colocation/job_policy.h"

namespace tandem {

// Who runs in other lanes while the first of an order does.
enum class Beside {
  kNobody,     // The device is not shared.
  kWhoFits,    // The next in order, as long as all together do not want more than the device.
  kEverybody,  // One in every lane.
};

// Gives every lane to the first in order who is in it, as far as that leaves room for it.
[[nodiscard]] std::vector<JobTurn> TakeTurns(std::span<const JobView* const> in_order, const JobSnapshot& snapshot,
                                             Beside beside);

// The same for all who are ready: the smallest rank first, and of equals who came first.
template <typename Rank>
[[nodiscard]] std::vector<JobTurn> TakeTurnsBy(const JobSnapshot& snapshot, Beside beside, const Rank& rank) {
  std::vector<const JobView*> in_order;
  for (const JobView& job : snapshot.jobs) {
    if (job.ready) in_order.push_back(&job);
  }
  std::ranges::sort(in_order, {},
                    [&rank](const JobView* job) { return std::pair(std::invoke(rank, *job), job->order); });
  return TakeTurns(in_order, snapshot, beside);
}

}  // namespace tandem
