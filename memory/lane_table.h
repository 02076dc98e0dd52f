#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "api/base/result.h"
#include "memory/lane.h"
#include "memory/lane_safety.h"

namespace tandem {

enum class LaneFit : std::uint8_t {
  kNew,     // A lane of its own.
  kReuse,   // A lane that is long enough.
  kResize,  // A lane that becomes long enough at its next boundary.
  kQueue,   // There is no room now.
};

// Where a session goes.
struct LaneAnswer {
  LaneFit fit = LaneFit::kQueue;
  LaneId lane{};             // kReuse, kResize: which.
  std::uint64_t length = 0;  // Of the lane with the session in it, from its next boundary on.

  // Why it is queued, in bytes.
  std::uint64_t needed = 0;      // At least so much must be free for it: P, and what the longest lane lacks of E.
  std::uint64_t free = 0;        // So much is.
  std::uint64_t must_leave = 0;  // At least so much must be given back by others; 2^64 - 1 stands for more.
  bool possible = true;          // Alone on the device it would fit.

  friend bool operator==(const LaneAnswer&, const LaneAnswer&) = default;
};

// Shares out the memory of one device to sessions: each keeps P bytes as long as it is there, and has its E bytes in a
// lane, in which sessions take turns. Lanes are there at the same time. The safety condition (memory/lane_safety.h)
// holds after every operation, or the process ends:
//
//   ΣP + Σ max(L, what L becomes at the lane's next boundary) ≤ max(budget, what was in use when the budget fell)
//
// So it holds before the boundary, at it and after it, whichever lane comes to one first. Sizes may be anything up to
// 2^64 - 1.
//
// The budget may fall below what is in use, as a control group's limit can. Nothing can be taken back then, so what is
// in use stays allowed, but nothing more: no session is admitted, not even one that needs no byte, and a correction may
// not add to the sum. What leaves lowers what is allowed, until the budget holds again. `overhang` says how far it is
// until then, for whoever can pause, offload or unload.
//
// A plain value: no clock, no lock, no I/O; a copy can be tried things on. Not thread-safe: its owner guards it.
class LaneTable {
 public:
  static constexpr std::size_t kAnyLanes = static_cast<std::size_t>(-1);

  // No more lanes than `max_lanes`, at least one: where only so many runs are under way at once, more are of no use.
  explicit LaneTable(std::uint64_t budget, std::size_t max_lanes = kAnyLanes);

  // Where a session goes that needs so much, by the first of these rules that can be followed:
  // 1. a new lane of E bytes, if there may be one more, and ΣP + P + ΣL + E ≤ budget;
  // 2. the tightest lane with L ≥ E, if ΣP + P + ΣL ≤ budget; of equals the one with the fewest sessions, then the
  //    oldest;
  // 3. the lane that has to grow least to have E bytes at its next boundary, if the sum holds with that;
  // 4. none.
  // A session that takes no turns has rules 1 and 4 only, and its lane is none for others; nor is that of another
  // company.
  // Pure: same table, same answer.
  [[nodiscard]] LaneAnswer FindLane(const SessionNeed& need) const;

  // To where FindLane said, and says how the lane is called. kConflict: the session is there already, or the answer is
  // not what FindLane says now. kUnavailable: there is no room.
  [[nodiscard]] Result<LaneId> Admit(SessionId session, const SessionNeed& need, const LaneAnswer& answer);
  // Its P is free at once. A lane whose largest session this was shrinks to the largest that is left, at its boundary;
  // one that is empty is gone. kNotFound.
  [[nodiscard]] Status Leave(SessionId session);
  // What it needs turned out to be otherwise. Whatever adds nothing to the sum is done; what does only within the
  // budget. Else kUnavailable with the reason, and nothing has changed. A session whose E has outgrown the lane's
  // length does not run until the boundary. kNotFound.
  [[nodiscard]] Status Correct(SessionId session, const SessionNeed& need);
  // It has so much already, whether there is room or not: a model that was loaded, a job that turned out to be larger.
  // Where there is none the budget is as one that fell. A newcomer goes to the lane `beside`, with whose sessions it
  // takes turns, else to where FindLane says or, without room, to a lane of its own, however many there are.
  // kNotFound: there is no lane `beside`. kConflict: its sessions take no turns. kTooLarge: the sum would be above
  // 2^64 - 1.
  [[nodiscard]] Status Have(SessionId session, const SessionNeed& need, std::optional<LaneId> beside = std::nullopt);
  // An iteration in the lane has ended and the next has not begun: the lane has the length that it was to have.
  // kNotFound.
  [[nodiscard]] Status Boundary(LaneId lane);
  void BoundaryOfAll();
  void SetBudget(std::uint64_t budget);

  [[nodiscard]] std::uint64_t budget() const { return budget_; }
  [[nodiscard]] const LaneUse& use() const { return use_; }
  // Of the budget; 0 when more is in use.
  [[nodiscard]] std::uint64_t free() const { return budget_ - std::min(budget_, use_.total()); }
  // By so much more is in use than the budget has.
  [[nodiscard]] std::uint64_t overhang() const { return use_.total() - std::min(budget_, use_.total()); }
  // The oldest first. Until the next operation.
  [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }

  struct Place {
    LaneId lane{};
    SessionNeed need;
    bool fits = false;  // Into the lane as it is: it may run.
  };
  [[nodiscard]] std::optional<Place> Find(SessionId session) const;

  friend bool operator==(const LaneTable&, const LaneTable&) = default;

 private:
  struct Slot {
    Lane* lane;
    LaneSession* session;
  };
  [[nodiscard]] std::optional<Slot> SlotOf(SessionId session);
  [[nodiscard]] const Lane* Tightest(const SessionNeed& need) const;
  [[nodiscard]] const Lane* Longest(LaneCompany company) const;
  // Puts a session that is not there yet into a lane, whatever that comes to.
  [[nodiscard]] Status Put(SessionId session, const SessionNeed& need, std::optional<LaneId> beside);
  // To be called when something has changed.
  void Settle();

  std::size_t max_lanes_;
  std::uint64_t budget_;
  std::uint64_t allowed_;  // The budget, or what is in use when that is more.
  std::uint64_t named_ = 0;
  std::vector<Lane> lanes_;
  LaneUse use_;
};

}  // namespace tandem
