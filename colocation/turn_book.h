#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "api/base/clock.h"
#include "colocation/job_ledger.h"
#include "colocation/job_policy.h"
#include "colocation/trainer_board.h"
#include "memory/lane.h"

namespace tandem {

// A job as it comes to take turns.
struct TurnJob {
  SessionId session{};
  LaneId lane{};
  std::uint64_t order = 0;  // These as a JobView has them.
  int priority = 0;
  double width = 1;
  std::uint64_t bytes = 0;  // That it holds, for who shares memory out fairly.
};

enum class TurnState : std::uint8_t {
  kAway,     // It has not asked for a turn yet: its trainer loads.
  kWaits,    // At a boundary.
  kRuns,     // It has its turn.
  kLeaving,  // Its turn is over at the boundary that it comes to next.
  kDone,     // It needs no turn any more.
};

// "waits": as answers spell it.
[[nodiscard]] std::string_view TurnStateName(TurnState state);

// Who takes which turn among jobs that share a device: a policy's decisions, made into orders for trainers that come to
// their boundaries when they come. All that it relies on it is told, with times; trainers are believed only in that
// they wait.
//
// - A turn lasts for kLeastTurn, and then until the boundary, as long as others want one; else until they do.
// - Who is to stop is given time until its next boundary. One that takes much longer than its iterations do is overdue:
//   nobody waits for it any more, and it has its next turn like all others when it comes to a boundary after all.
//   Only those of its lane do wait, as what it has there would be overwritten: whoever looks after trainers is to
//   end it.
//
// A plain value: no clock, no lock. Not thread-safe: its owner guards it.
class TurnBook {
 public:
  // Long against what a change of turns takes, and short against what people see.
  static constexpr std::chrono::milliseconds kLeastTurn{20};
  // So long nobody is overdue, and after that until so many iterations of its own could have been done.
  static constexpr std::chrono::seconds kPatience{10};
  static constexpr int kPatientIterations = 10;

  void Add(const TurnJob& job, MonotonicTime now);
  // It has gone, wherever it was. Nothing for one that is not there, as below.
  void Remove(SessionId job);
  // A person holds it: it takes no turn. Nobody waits for it, as it stands still at once; but for those of its lane,
  // which is to be left at a boundary.
  void SetPaused(SessionId job, bool paused, MonotonicTime now);
  // It has something where others are to have theirs: its turn ends at its next boundary, whoever is next. Nothing for
  // one that has no turn.
  void Recall(SessionId job);
  // It has done so many of so many steps; its own word.
  void SetProgress(SessionId job, std::int64_t done, std::int64_t total, MonotonicTime now);
  // It waits by its last order, needs no turn any more, or neither.
  void Saw(SessionId job, bool waits, bool done, MonotonicTime now);
  // Of the time since it was told to leave, so much it was not let run.
  void Excuse(SessionId job, std::chrono::nanoseconds stopped);

  struct Order {
    SessionId session{};
    bool go = false;  // Else it is to wait from its next boundary on.

    friend bool operator==(const Order&, const Order&) = default;
  };
  // What is to be told now; those who are to go on last. Each order is given once, and is taken for given.
  [[nodiscard]] std::vector<Order> Decide(const JobPolicy& policy, MonotonicTime now);
  // When to decide again if nothing happens; nullopt: never.
  [[nodiscard]] std::optional<MonotonicTime> Due() const;

  struct View {
    TurnJob job;
    TurnState state = TurnState::kAway;
    bool paused = false;
    bool overdue = false;
    std::chrono::nanoseconds leaving{0};  // So long ago it was told to leave, and has not; without what it was stopped.
    std::uint64_t turns = 0;
    std::chrono::nanoseconds ran{0};     // In its turns.
    std::chrono::nanoseconds waited{0};  // For them, at boundaries.
    std::optional<std::chrono::nanoseconds> remaining;
  };
  // In the order in which they came.
  [[nodiscard]] std::vector<View> Jobs(MonotonicTime now) const;
  [[nodiscard]] std::optional<View> Find(SessionId job, MonotonicTime now) const;

 private:
  struct Job {
    TurnJob who;
    TurnState state = TurnState::kAway;
    bool paused = false;
    bool overdue = false;
    bool recalled = false;
    std::uint64_t turns = 0;
    MonotonicTime since;    // Its times are counted up to here.
    MonotonicTime stop_at;  // Of a turn while others want one; max: nobody does.
    MonotonicTime left;     // When it was told to leave, and what it was stopped since put on top.
    std::chrono::nanoseconds ran{0};
    std::chrono::nanoseconds waited{0};
    std::optional<std::int64_t> first_done;  // As it first told, and what it had run by then.
    std::chrono::nanoseconds first_ran{0};
    std::int64_t done = 0;  // As it told last, and what it had run when that was new.
    std::chrono::nanoseconds done_ran{0};
    std::int64_t total = 0;

    [[nodiscard]] bool has_turn() const { return state == TurnState::kRuns || state == TurnState::kLeaving; }
    // Others are not to run beside it where the policy does not say so.
    [[nodiscard]] bool in_the_way() const { return has_turn() && !paused && !overdue; }
    // At a boundary, or before it is asked again.
    [[nodiscard]] bool ready() const { return (state == TurnState::kWaits || has_turn()) && !paused && !overdue; }
    [[nodiscard]] std::optional<std::chrono::nanoseconds> step() const;
    [[nodiscard]] std::optional<std::chrono::nanoseconds> remaining() const;
  };

  [[nodiscard]] Job* At(SessionId job);
  // Counts what it did until now.
  void Count(Job& job, MonotonicTime now);
  void CountAll(MonotonicTime now);
  [[nodiscard]] View ViewOf(const Job& job, MonotonicTime now) const;
  // It is at a boundary, or comes to one, and nobody stands still in its lane.
  [[nodiscard]] bool IsReady(const Job& job) const;
  [[nodiscard]] std::vector<JobView> Snapshot() const;
  void FindOverdue(MonotonicTime now);
  [[nodiscard]] MonotonicTime OverdueAt(const Job& job) const;
  // Whether nobody who is not `wanted` is in its way.
  [[nodiscard]] bool MayGo(const Job& job, const std::vector<SessionId>& wanted) const;

  std::map<SessionId, Job> jobs_;
  JobLedger ledger_;
};

}  // namespace tandem
