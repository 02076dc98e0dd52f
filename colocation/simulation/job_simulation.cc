#include "colocation/simulation/job_simulation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "colocation/job_ledger.h"
#include "colocation/simulation/event_clock.h"
#include "memory/lane_queue.h"
#include "memory/lane_table.h"

namespace tandem::simulation {
namespace {

using std::chrono::nanoseconds;

class JobRun {
 public:
  JobRun(const JobMix& mix, const JobPolicy& policy)
      : mix_(mix),
        policy_(policy),
        table_(mix.budget, mix.max_lanes),
        queue_(mix.most_overtaken),
        states_(mix.jobs.size()) {
    result_.jobs.resize(mix.jobs.size());
  }

  JobMixResult Go() {
    Settle();
    for (Time next = NextEvent(); next != kNever; next = NextEvent()) {
      Advance(next);
      EndIterations();
      Settle();
    }
    return std::move(result_);
  }

 private:
  struct State {
    std::uint64_t iterations = 0;  // Done.
    bool started = false;
  };
  // An iteration under way.
  struct Iteration {
    std::size_t job = 0;
    double left = 0;  // Nanoseconds at full speed.
  };

  // A session has the number of its job.
  static SessionId SessionOf(std::size_t job) { return SessionId{job}; }
  static std::size_t JobOf(SessionId session) { return std::to_underlying(session); }

  // Lets in who has come and finds room, and begins what is to run.
  void Settle() {
    while (came_ < mix_.jobs.size() && mix_.jobs[came_].arrival.count() <= now_) {
      result_.jobs[came_].arrival = mix_.jobs[came_].arrival;
      (void)queue_.Add(SessionOf(came_), mix_.jobs[came_].need, policy_.QueueRank(Waiting(came_)));
      ++came_;
    }
    PassBoundaries();
    while (const auto turn = queue_.Next(table_)) {
      (void)table_.Admit(turn->session, turn->need, turn->answer);
      (void)queue_.Take(turn->session);
      ledger_.Add(turn->session);
      admitted_.push_back(JobOf(turn->session));
      result_.jobs[JobOf(turn->session)].admitted = nanoseconds(now_);
      PassBoundaries();
    }
    result_.most_bytes = std::max(result_.most_bytes, table_.use().total());
    result_.most_jobs = std::max(result_.most_jobs, admitted_.size());
    Begin();
  }

  // Of every lane that stands still.
  void PassBoundaries() {
    std::vector<LaneId> still;
    for (const Lane& lane : table_.lanes()) {
      if (lane.length != lane.next && !running_.contains(lane.id)) still.push_back(lane.id);
    }
    for (const LaneId lane : still) (void)table_.Boundary(lane);
  }

  void Begin() {
    views_.clear();
    for (const std::size_t job : admitted_) views_.push_back(View(job));
    for (const JobTurn& turn : policy_.Decide({.jobs = views_})) {
      if (!turn.session || running_.contains(turn.lane)) continue;
      const std::size_t job = JobOf(*turn.session);
      running_[turn.lane] = {.job = job, .left = static_cast<double>(mix_.jobs[job].iteration.count())};
      if (!std::exchange(states_[job].started, true)) result_.jobs[job].started = nanoseconds(now_);
    }
    double width = 0;
    for (const auto& [lane, iteration] : running_) width += mix_.jobs[iteration.job].width;
    rate_ = 1 / std::max(1.0, width);
  }

  // With an estimate of the time that it takes, which is right.
  [[nodiscard]] JobView Waiting(std::size_t job) const {
    const SimulatedJob& made = mix_.jobs[job];
    return {.session = SessionOf(job),
            .order = job,
            .priority = made.priority,
            .remaining = made.iteration * static_cast<std::int64_t>(made.iterations - states_[job].iterations),
            .width = made.width};
  }

  [[nodiscard]] JobView View(std::size_t job) const {
    JobView view = Waiting(job);
    const auto place = table_.Find(view.session);
    view.lane = place->lane;
    view.ready = place->fits;
    view.had = ledger_.Had(view.session);
    return view;
  }

  [[nodiscard]] Time NextEvent() const {
    Time next = came_ < mix_.jobs.size() ? mix_.jobs[came_].arrival.count() : kNever;
    for (const auto& [lane, iteration] : running_) next = std::min(next, UsedUpAt(now_, iteration.left, rate_));
    return next;
  }

  void Advance(Time to) {
    for (auto& [lane, iteration] : running_) iteration.left -= rate_ * static_cast<double>(to - now_);
    now_ = to;
  }

  void EndIterations() {
    for (auto at = running_.begin(); at != running_.end();) {
      const auto [lane, iteration] = *at;
      if (iteration.left >= 1) {
        ++at;
        continue;
      }
      at = running_.erase(at);
      (void)table_.Boundary(lane);
      const SimulatedJob& job = mix_.jobs[iteration.job];
      const auto time = static_cast<double>(job.iteration.count()) * job.width;
      ledger_.Ran(SessionOf(iteration.job), nanoseconds(static_cast<std::int64_t>(time)),
                  job.need.persistent + job.need.ephemeral);
      ++result_.iterations;
      if (++states_[iteration.job].iterations == job.iterations) End(iteration.job);
    }
  }

  void End(std::size_t job) {
    (void)table_.Leave(SessionOf(job));
    ledger_.Remove(SessionOf(job));
    std::erase(admitted_, job);
    result_.jobs[job].ended = nanoseconds(now_);
    result_.jobs[job].done = true;
  }

  // Constant after construction.
  const JobMix& mix_;
  const JobPolicy& policy_;

  LaneTable table_;
  LaneQueue queue_;
  JobLedger ledger_;
  std::vector<State> states_;
  std::vector<std::size_t> admitted_;
  std::map<LaneId, Iteration> running_;
  std::vector<JobView> views_;  // Kept for its memory.
  JobMixResult result_;
  std::size_t came_ = 0;
  Time now_ = 0;
  double rate_ = 1;  // Of every iteration that is under way.
};

}  // namespace

JobMixResult SimulateJobs(const JobMix& mix, const JobPolicy& policy) {
  return JobRun(mix, policy).Go();
}

}  // namespace tandem::simulation
