#include "colocation/fair_share.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace tandem {

using std::chrono::nanoseconds;

std::size_t JoinFlows(std::vector<Flow>& flows, const FlowId& id, double weight) {
  const auto found = std::ranges::find(flows, id, &Flow::id);
  if (found != flows.end()) return static_cast<std::size_t>(found - flows.begin());
  FlowId other = id;
  other.patient = !id.patient;
  const auto sibling = std::ranges::find(flows, other, &Flow::id);
  if (sibling != flows.end()) {
    weight /= 2;
    sibling->weight = weight;
  }
  flows.push_back({.id = id, .weight = weight, .first = {}});
  return flows.size() - 1;
}

nanoseconds ShareLedger::Behind(const FlowId& flow) const {
  const auto debt = debts_.find(flow);
  return debt == debts_.end() ? nanoseconds(0) : debt->second;
}

const Flow* ShareLedger::FurthestBehind(std::span<const Flow> flows) const {
  if (flows.size() < 2) return nullptr;
  const Flow* furthest = nullptr;
  nanoseconds most = kMostBehind - nanoseconds(1);
  for (const Flow& flow : flows) {
    const nanoseconds behind = Behind(flow.id);
    if (behind <= most) continue;
    most = behind;
    furthest = &flow;
  }
  return furthest;
}

void ShareLedger::Begin(std::vector<Flow>& flows, FlowRun& run, nanoseconds expected) {
  run.counted = expected;
  run.had = Count(flows, run, expected, expected);
}

void ShareLedger::End(std::vector<Flow>& flows, const FlowRun& run, nanoseconds took) {
  Count(flows, run, took - run.counted, took - run.had);
}

nanoseconds ShareLedger::Count(std::vector<Flow>& flows, const FlowRun& run, nanoseconds due, nanoseconds taken) {
  JoinFlows(flows, run.id, run.weight);
  double all = 0;
  for (const Flow& flow : flows) all += flow.weight;
  nanoseconds had{0};
  for (const Flow& flow : flows) {
    const nanoseconds share(std::llround(static_cast<double>(due.count()) * flow.weight / all));
    const bool ran = flow.id == run.id;
    const nanoseconds before = Behind(flow.id) + share;
    const nanoseconds after = std::max(nanoseconds(0), before - (ran ? taken : nanoseconds(0)));
    if (ran) had = before - after;
    if (after > nanoseconds(0)) {
      debts_[flow.id] = after;
    } else {
      debts_.erase(flow.id);
    }
  }
  FindMost();
  return had;
}

void ShareLedger::Fade(nanoseconds took, const std::function<bool(const FlowId&)>& waits) {
  for (auto debt = debts_.begin(); debt != debts_.end();) {
    if (!waits(debt->first)) debt->second -= took / kFade;
    debt = debt->second > nanoseconds(0) ? std::next(debt) : debts_.erase(debt);
  }
  FindMost();
}

void ShareLedger::Forget(const FlowId& flow) {
  if (debts_.erase(flow) > 0) FindMost();
}

void ShareLedger::Clear() {
  debts_.clear();
  most_ = nanoseconds(0);
}

void ShareLedger::FindMost() {
  most_ = nanoseconds(0);
  for (const auto& [flow, behind] : debts_) most_ = std::max(most_, behind);
}

}  // namespace tandem
