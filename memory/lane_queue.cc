#include "memory/lane_queue.h"

#include <algorithm>
#include <utility>

#include "memory/lane_outlook.h"

namespace tandem {

Status LaneQueue::Add(SessionId session, const SessionNeed& need, std::int64_t rank) {
  if (Find(session)) return Fail(ErrorCode::kConflict, "session {} waits already", std::to_underlying(session));
  waiting_.push_back({.session = session, .need = need, .rank = rank});
  return {};
}

Status LaneQueue::Remove(SessionId session) {
  TANDEM_ASSIGN(const auto place, Find(session));
  waiting_.erase(place);
  return {};
}

Status LaneQueue::Correct(SessionId session, const SessionNeed& need) {
  TANDEM_ASSIGN(const auto place, Find(session));
  place->need = need;
  return {};
}

Status LaneQueue::Take(SessionId session) {
  TANDEM_ASSIGN(const auto place, Find(session));
  for (auto before = waiting_.begin(); before != place; ++before) {
    before->overtaken = std::min(before->overtaken + 1, most_overtaken_);
  }
  waiting_.erase(place);
  return {};
}

LaneQueue::Look LaneQueue::LookAt(const LaneTable& table) const {
  std::optional<LaneTable> later;
  std::optional<Turn> turn;
  std::int64_t rank = 0;
  for (const Waiting& one : waiting_) {
    const bool aged = one.overtaken >= most_overtaken_;
    if (!aged && turn && one.rank >= rank) continue;
    const LaneAnswer answer = table.FindLane(one.need);
    if (answer.fit != LaneFit::kQueue) {
      turn = Turn{.session = one.session, .need = one.need, .answer = answer};
      rank = one.rank;
      if (aged) break;
    } else if (aged) {
      if (!later) later = OnceOthersEnd(table);
      if (later->FindLane(one.need).fit == LaneFit::kQueue) continue;
      // Who came before it may go: it is not overtaken by that.
      if (turn) break;
      return {.reserved = one.session};
    }
  }
  return {.turn = turn};
}

Result<std::vector<LaneQueue::Waiting>::iterator> LaneQueue::Find(SessionId session) {
  const auto found = std::ranges::find(waiting_, session, &Waiting::session);
  if (found == waiting_.end()) {
    return Fail(ErrorCode::kNotFound, "session {} does not wait", std::to_underlying(session));
  }
  return found;
}

}  // namespace tandem
