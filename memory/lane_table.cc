#include "memory/lane_table.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tandem {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// kMost when it is more.
std::uint64_t Sum(std::uint64_t a, std::uint64_t b) {
  return b > kMost - a ? kMost : a + b;
}

std::uint64_t Beyond(std::uint64_t a, std::uint64_t b) {
  return a - std::min(a, b);
}

// The largest E in a lane, with that of one of its sessions, or of none, being another.
std::uint64_t LargestWith(const Lane& lane, const LaneSession* changed, std::uint64_t ephemeral) {
  std::uint64_t largest = 0;
  for (const LaneSession& session : lane.sessions) {
    largest = std::max(largest, &session == changed ? ephemeral : session.need.ephemeral);
  }
  return largest;
}

// Whether its sessions take turns with those of that kind. Of an empty lane there is none.
bool IsShared(const Lane& lane, LaneCompany company) {
  const SessionNeed& first = lane.sessions.front().need;
  return !first.alone && first.company == company;
}

}  // namespace

LaneTable::LaneTable(std::uint64_t budget, std::size_t max_lanes)
    : max_lanes_(std::max<std::size_t>(max_lanes, 1)), budget_(budget), allowed_(budget) {}

LaneAnswer LaneTable::FindLane(const SessionNeed& need) const {
  const Lane* longest = need.alone ? nullptr : Longest(need.company);
  const std::uint64_t lacking = Beyond(need.ephemeral, longest != nullptr ? longest->counted() : 0);
  if (overhang() == 0 && need.persistent <= free()) {
    const std::uint64_t left = free() - need.persistent;
    if (lanes_.size() < max_lanes_ && need.ephemeral <= left) {
      return {.fit = LaneFit::kNew, .length = need.ephemeral};
    }
    if (const Lane* tightest = need.alone ? nullptr : Tightest(need)) {
      return {.fit = LaneFit::kReuse, .lane = tightest->id, .length = std::max(tightest->next, need.ephemeral)};
    }
    if (longest != nullptr && lacking <= left) {
      return {.fit = LaneFit::kResize, .lane = longest->id, .length = need.ephemeral};
    }
  }
  const std::uint64_t needed = Sum(need.persistent, lacking);
  return {.fit = LaneFit::kQueue,
          .needed = needed,
          .free = free(),
          .must_leave = Sum(Beyond(needed, free()), overhang()),
          .possible = need.persistent <= budget_ && need.ephemeral <= budget_ - need.persistent};
}

Result<LaneId> LaneTable::Admit(SessionId session, const SessionNeed& need, const LaneAnswer& answer) {
  if (SlotOf(session)) return Fail(ErrorCode::kConflict, "session {} is admitted already", std::to_underlying(session));
  if (answer != FindLane(need)) {
    return Fail(ErrorCode::kConflict, "session {}: lanes have changed since one was found for it",
                std::to_underlying(session));
  }
  if (answer.fit == LaneFit::kQueue) {
    return Fail(ErrorCode::kUnavailable, "session {} needs {} bytes, and {} are free", std::to_underlying(session),
                answer.needed, answer.free);
  }
  if (answer.fit == LaneFit::kNew) lanes_.push_back({.id = LaneId{++named_}, .length = need.ephemeral});
  Lane& lane = answer.fit == LaneFit::kNew ? lanes_.back() : *std::ranges::find(lanes_, answer.lane, &Lane::id);
  lane.sessions.push_back({.id = session, .need = need});
  lane.next = answer.length;
  const LaneId id = lane.id;
  Settle();
  return id;
}

Status LaneTable::Leave(SessionId session) {
  const auto slot = SlotOf(session);
  if (!slot) return Fail(ErrorCode::kNotFound, "session {} has no lane", std::to_underlying(session));
  Lane& lane = *slot->lane;
  lane.sessions.erase(lane.sessions.begin() + (slot->session - lane.sessions.data()));
  if (lane.sessions.empty()) {
    lanes_.erase(lanes_.begin() + (&lane - lanes_.data()));
  } else {
    lane.next = LargestWith(lane, nullptr, 0);
  }
  Settle();
  return {};
}

Status LaneTable::Correct(SessionId session, const SessionNeed& need) {
  const auto slot = SlotOf(session);
  if (!slot) return Fail(ErrorCode::kNotFound, "session {} has no lane", std::to_underlying(session));
  Lane& lane = *slot->lane;
  const SessionNeed& had = slot->session->need;
  if (need.alone && lane.sessions.size() > 1) {
    return Fail(ErrorCode::kConflict, "session {} shares its lane", std::to_underlying(session));
  }
  const std::uint64_t next = LargestWith(lane, slot->session, need.ephemeral);
  const std::uint64_t length = std::max(lane.length, next);
  const std::uint64_t persistent_more = Beyond(need.persistent, had.persistent);
  const std::uint64_t lane_more = Beyond(length, lane.counted());
  // What it gives back is no more than what is in use, so that this is no more than the budget, or that.
  const std::uint64_t given = Beyond(had.persistent, need.persistent) + Beyond(lane.counted(), length);
  const std::uint64_t available = free() + given;
  if (persistent_more > available || lane_more > available - persistent_more) {
    return Fail(ErrorCode::kUnavailable, "session {} needs {} bytes more, and {} are free", std::to_underlying(session),
                Beyond(Sum(persistent_more, lane_more), given), free());
  }
  slot->session->need = need;
  lane.next = next;
  Settle();
  return {};
}

Status LaneTable::Have(SessionId session, const SessionNeed& need, std::optional<LaneId> beside) {
  LaneTable after = *this;
  if (const auto slot = after.SlotOf(session)) {
    if (need.alone && slot->lane->sessions.size() > 1) {
      return Fail(ErrorCode::kConflict, "session {} shares its lane", std::to_underlying(session));
    }
    slot->lane->next = LargestWith(*slot->lane, slot->session, need.ephemeral);
    slot->session->need = need;
  } else {
    TANDEM_TRY(after.Put(session, need, beside));
  }
  const Result<LaneUse> use = CheckSafe(after.lanes_, kMost);
  if (!use) return Fail(ErrorCode::kTooLarge, "{}", use.error().message);
  *this = std::move(after);
  allowed_ = std::max(allowed_, use->total());
  Settle();
  return {};
}

Status LaneTable::Put(SessionId session, const SessionNeed& need, std::optional<LaneId> beside) {
  const LaneAnswer answer = FindLane(need);
  const bool in_another = !beside && (answer.fit == LaneFit::kReuse || answer.fit == LaneFit::kResize);
  const LaneId id = beside ? *beside : in_another ? answer.lane : LaneId{++named_};
  if (!beside && !in_another) lanes_.push_back({.id = id, .length = need.ephemeral, .next = need.ephemeral});
  const auto lane = std::ranges::find(lanes_, id, &Lane::id);
  if (lane == lanes_.end()) return Fail(ErrorCode::kNotFound, "there is no lane {}", std::to_underlying(id));
  if (!lane->sessions.empty() && (need.alone || !IsShared(*lane, need.company))) {
    return Fail(ErrorCode::kConflict, "in lane {} no turns are taken", std::to_underlying(id));
  }
  lane->sessions.push_back({.id = session, .need = need});
  lane->next = std::max(lane->next, need.ephemeral);
  return {};
}

Status LaneTable::Boundary(LaneId lane) {
  const auto found = std::ranges::find(lanes_, lane, &Lane::id);
  if (found == lanes_.end()) return Fail(ErrorCode::kNotFound, "there is no lane {}", std::to_underlying(lane));
  found->length = found->next;
  Settle();
  return {};
}

void LaneTable::BoundaryOfAll() {
  for (Lane& lane : lanes_) lane.length = lane.next;
  Settle();
}

void LaneTable::SetBudget(std::uint64_t budget) {
  budget_ = budget;
  allowed_ = std::max(budget, use_.total());
  Settle();
}

std::optional<LaneTable::Place> LaneTable::Find(SessionId session) const {
  for (const Lane& lane : lanes_) {
    for (const auto& [id, need] : lane.sessions) {
      if (id == session) return Place{.lane = lane.id, .need = need, .fits = need.ephemeral <= lane.length};
    }
  }
  return std::nullopt;
}

std::optional<LaneTable::Slot> LaneTable::SlotOf(SessionId session) {
  for (Lane& lane : lanes_) {
    const auto found = std::ranges::find(lane.sessions, session, &LaneSession::id);
    if (found != lane.sessions.end()) return Slot{.lane = &lane, .session = &*found};
  }
  return std::nullopt;
}

const Lane* LaneTable::Tightest(const SessionNeed& need) const {
  const Lane* tightest = nullptr;
  for (const Lane& lane : lanes_) {
    if (!IsShared(lane, need.company) || lane.counted() < need.ephemeral) continue;
    const auto rank = [](const Lane& one) { return std::pair(one.counted(), one.sessions.size()); };
    if (tightest == nullptr || rank(lane) < rank(*tightest)) tightest = &lane;
  }
  return tightest;
}

const Lane* LaneTable::Longest(LaneCompany company) const {
  const Lane* longest = nullptr;
  for (const Lane& lane : lanes_) {
    if (IsShared(lane, company) && (longest == nullptr || lane.counted() > longest->counted())) longest = &lane;
  }
  return longest;
}

void LaneTable::Settle() {
  use_ = AssertSafe(lanes_, allowed_);
  allowed_ = std::max(budget_, use_.total());
}

}  // namespace tandem
