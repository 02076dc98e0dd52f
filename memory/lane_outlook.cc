#include "memory/lane_outlook.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <span>
#include <tuple>
#include <utility>

namespace tandem {
namespace {

LaneTable Without(LaneTable table, std::span<const SessionId> sessions) {
  for (const SessionId session : sessions) (void)table.Leave(session);
  table.BoundaryOfAll();
  return table;
}

bool Fits(const LaneTable& table, const SessionNeed& need) {
  return table.FindLane(need).fit != LaneFit::kQueue;
}

// Those who end by themselves first, the smallest of them first.
std::vector<LaneSession> BySize(const LaneTable& table) {
  std::vector<LaneSession> sessions;
  for (const Lane& lane : table.lanes()) {
    sessions.insert(sessions.end(), lane.sessions.begin(), lane.sessions.end());
  }
  const auto rank = [](const LaneSession& session) {
    // Of a session that was admitted the sum is within the budget, so it does not overflow.
    return std::tuple(session.need.stays, session.need.persistent + session.need.ephemeral, session.id);
  };
  std::ranges::sort(sessions, {}, rank);
  return sessions;
}

}  // namespace

LaneTable OnceOthersEnd(const LaneTable& table) {
  std::vector<SessionId> ending;
  for (const Lane& lane : table.lanes()) {
    for (const auto& [id, need] : lane.sessions) {
      if (!need.stays) ending.push_back(id);
    }
  }
  return Without(table, ending);
}

std::vector<SessionId> WhoMustLeave(const LaneTable& table, const SessionNeed& need) {
  if (Fits(table, need)) return {};
  std::vector<LaneSession> sessions = BySize(table);
  for (const auto& [id, had] : sessions) {
    if (const SessionId one[] = {id}; !had.stays && Fits(Without(table, one), need)) return {id};
  }
  std::vector<SessionId> leaving;
  bool fits = false;
  for (const bool stays : {false, true}) {
    for (const LaneSession& session : sessions | std::views::reverse) {
      if (fits) break;
      if (session.need.stays != stays) continue;
      leaving.push_back(session.id);
      fits = Fits(Without(table, leaving), need);
    }
  }
  if (!fits) return {};
  // Who was taken before a larger help came may not be needed.
  for (std::size_t i = leaving.size(); i-- > 0;) {
    std::vector<SessionId> fewer = leaving;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (Fits(Without(table, fewer), need)) leaving = std::move(fewer);
  }
  return leaving;
}

}  // namespace tandem
