#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "colocation/acknowledgement_times.h"
#include "colocation/arbiter.h"
#include "colocation/job_policy.h"
#include "colocation/trainer_board.h"
#include "colocation/turn_book.h"
#include "memory/lane_pages.h"
#include "profiler/flight_recorder.h"

namespace tandem {

class TurnLease;

// A trainer that takes turns. All is borrowed, and outlives the lease.
struct TurnTaker {
  TurnJob job;
  TrainerBoard* board = nullptr;  // From now on only the lease orders turns there; it waits for its first.
  int bell = -1;                  // That it rings; an eventfd that does not block.
  int pidfd = -1;                 // Of its process: readable when that has ended. -1: not known.
  TrainerLease* ruled = nullptr;  // Null: no arbiter rules over it.
  std::string owner;              // Of the job: what one has left in a lane nobody else reads.
  // Asked when it needs so much in its lane: how long that is now. Called on the thread of turns.
  std::function<std::uint64_t(std::uint64_t needed)> grow;
};

// How turns stand, for people.
struct TurnsState {
  std::string_view policy;
  std::vector<TurnBook::View> jobs;   // In the order in which they came.
  std::uint64_t switches = 0;         // From one job to another.
  AcknowledgementTimes switch_times;  // Each from when one came to its boundary until the other ran, as they tell it.
};

// Gives trainers their turns: asks a policy at each boundary, and tells trainers by their boards. A trainer that comes
// to its boundary rings; whoever is next begins as soon as this thread has run and it has a core. What trainers tell is
// bounded, and who does not come is not waited for (TurnBook). Thread-safe. Its thread sleeps while nobody rings and
// nobody's turn is to end; it takes no memory in the way of requests and none of their locks.
class JobTurns {
 public:
  // kUnavailable: there are no descriptors left. The clock and the recorder, which may be null, are borrowed; all
  // leases end before it.
  [[nodiscard]] static Result<std::unique_ptr<JobTurns>> Create(const Clock& clock,
                                                                std::unique_ptr<const JobPolicy> policy,
                                                                FlightRecorder* recorder = nullptr);
  ~JobTurns();
  JobTurns(const JobTurns&) = delete;
  JobTurns& operator=(const JobTurns&) = delete;

  // Takes turns for as long as the lease lasts. Of two with the same session the first must have ended.
  [[nodiscard]] std::unique_ptr<TurnLease> Admit(const TurnTaker& taker) EXCLUDES(mu_);
  // The pages of a lane, for the trainers that are to be in it; of no length at first. The descriptor is there until
  // the lane is closed. kUnavailable.
  [[nodiscard]] Result<int> OpenLane(LaneId lane) EXCLUDES(mu_);
  // So long it is: at once if that is longer, else from the next turn in it on. Its trainers use it from when it is
  // shared; until then this does nothing.
  void SetLane(LaneId lane, std::uint64_t bytes, bool shared) EXCLUDES(mu_);
  // Nobody is in these any more, but in those.
  void CloseLanesBut(const std::set<LaneId>& kept) EXCLUDES(mu_);
  // From the next boundary on.
  void SetPolicy(std::unique_ptr<const JobPolicy> policy) EXCLUDES(mu_);
  [[nodiscard]] TurnsState State() const EXCLUDES(mu_);

 private:
  friend class TurnLease;

  struct Taker {
    TurnTaker who;
    bool ended = false;                   // Its last order has been given, or its process has gone.
    std::chrono::nanoseconds stopped{0};  // By the arbiter, as of the last look.
    MonotonicTime told;                   // When it was told to wait last.
    std::optional<MonotonicTime> after;   // It has been given the turn of another, who came to its boundary then.
    std::optional<MonotonicTime> began;   // Its turn; nullopt: it has none.
  };

  struct OpenedLane {
    std::unique_ptr<LanePages> pages;
    std::uint64_t target = 0;          // The length that it is to have; 0: it is not used.
    std::optional<std::string> owner;  // Of whoever was in it last.
  };

  JobTurns(const Clock& clock, std::unique_ptr<const JobPolicy> policy, FlightRecorder* recorder, int epoll, int news);
  void Run();
  // Takes what has happened, but for what boards say.
  void Hear(std::optional<MonotonicTime> until);
  void Look(MonotonicTime now) REQUIRES(mu_);
  void LookAt(SessionId session, Taker& taker, MonotonicTime now) REQUIRES(mu_);
  // Returns when to look again.
  [[nodiscard]] std::optional<MonotonicTime> Decide() EXCLUDES(mu_);
  void Give(const TurnBook::Order& order, MonotonicTime now) REQUIRES(mu_);
  // Makes its lane ready for one that is about to have its turn.
  void Prepare(const Taker& taker) REQUIRES(mu_);
  void AnswerGrowth(const Taker& taker) REQUIRES(mu_);
  // Tell the recorder of its turn. One that has none does not end.
  void NoteBegin(Taker& taker, MonotonicTime now) REQUIRES(mu_);
  void NoteEnd(Taker& taker, MonotonicTime left) REQUIRES(mu_);
  void TellNews() const;
  void Watch(int fd, std::uint64_t what) const;
  void Forget(SessionId session) EXCLUDES(mu_);

  // Constant after construction.
  const Clock& clock_;
  FlightRecorder* const recorder_;
  const int epoll_;  // Owned, as the next.
  const int news_;

  std::atomic<bool> stopping_{false};

  mutable Mutex mu_;  // Before those of the arbiter, and of whoever is asked for longer lanes.
  std::unique_ptr<const JobPolicy> policy_ GUARDED_BY(mu_);
  TurnBook book_ GUARDED_BY(mu_);
  std::map<SessionId, Taker> takers_ GUARDED_BY(mu_);
  std::map<LaneId, OpenedLane> lanes_ GUARDED_BY(mu_);
  // Who was found to have come to the end of its turn just now, and when it did.
  std::optional<std::pair<SessionId, MonotonicTime>> left_ GUARDED_BY(mu_);
  std::uint64_t switches_ GUARDED_BY(mu_) = 0;
  AcknowledgementTimes switch_times_ GUARDED_BY(mu_);

  std::thread thread_;  // Last: it uses the others.
};

// A trainer's place among those who take turns. Thread-safe.
class TurnLease {
 public:
  ~TurnLease() { turns_.Forget(session_); }
  TurnLease(const TurnLease&) = delete;
  TurnLease& operator=(const TurnLease&) = delete;

  // A person holds it, or lets it on: then it waits for a turn like all others.
  void SetPaused(bool paused);
  // It has done so many of so many steps.
  void SetProgress(std::int64_t done, std::int64_t total);
  // It is to begin no iteration any more; whoever waits goes on at once.
  void End();
  // Gives its last order anew if another lies there, and says so.
  [[nodiscard]] bool Restore();
  // It is overdue, and others wait in its lane that it does not leave: how long after it was told to. Nullopt: not.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> blocks() const;
  // It uses a lane, so it is to stand still at boundaries only.
  [[nodiscard]] bool in_lane() const;
  // It was not told to run: that it does nothing is no sign that it hangs.
  [[nodiscard]] bool waits() const;
  // So long it has waited for its turns, at boundaries.
  [[nodiscard]] std::chrono::nanoseconds waited() const;

 private:
  friend class JobTurns;
  TurnLease(JobTurns& turns, SessionId session) : turns_(turns), session_(session) {}

  JobTurns& turns_;
  const SessionId session_;
};

}  // namespace tandem
