#include "colocation/fair_share.h"

#include <algorithm>
#include <cmath>

namespace tandem {

using std::chrono::nanoseconds;

const Flow* FurthestBehind(std::span<const Flow> flows) {
  if (flows.size() < 2) return nullptr;
  const auto furthest = std::ranges::max_element(flows, {}, [](const Flow& flow) { return *flow.behind; });
  return *furthest->behind >= kMostBehind ? &*furthest : nullptr;
}

void ChargeRun(std::span<const Flow> flows, const FlowRun& ran, nanoseconds took) {
  double all = 0;
  bool waits = false;
  for (const Flow& flow : flows) {
    all += flow.weight;
    waits |= flow.id == ran.id;
  }
  if (!waits) all += ran.weight;
  for (const Flow& flow : flows) {
    const nanoseconds due(std::llround(static_cast<double>(took.count()) * flow.weight / all));
    const nanoseconds had = flow.id == ran.id ? took - ran.carried : nanoseconds(0);
    *flow.behind = std::max(nanoseconds(0), *flow.behind + due - had);
  }
}

}  // namespace tandem
