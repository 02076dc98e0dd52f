#include "server/jobs/supervisor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "api/wire/training_job_json.h"
#include "colocation/core_seats.h"
#include "server/log/log.h"
#include "server/trainer/run_file.h"

namespace tandem::jobs {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{200};  // While a trainer runs: its life and memory are looked at.
constexpr milliseconds kBetweenSaves{500};
constexpr milliseconds kBetweenSettling{1'000};
constexpr std::size_t kReasonLogBytes = 2000;

std::int64_t WallMs(const Clock& clock) {
  return std::chrono::duration_cast<milliseconds>(clock.WallNow().time_since_epoch()).count();
}

// What fails again however often it is tried.
bool IsFinal(ErrorCode code) {
  return code == ErrorCode::kInvalidArgument || code == ErrorCode::kUnsupported;
}

}  // namespace

Supervisor::Supervisor(const JobOptions& options, JobStore& store, JobMetrics& metrics, const Clock& clock,
                       std::function<void(const JobRecord&, const TrainingJob&)> succeeded)
    : options_(options),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      succeeded_(std::move(succeeded)),
      memory_(options),
      waits_(clock, options.last_backoff),
      machine_(options.arbiter ? options.arbiter->State() : ArbiterState{}) {}

Supervisor::~Supervisor() {
  for (auto& [id, active] : active_) Save(active);
}

Status Supervisor::Recover() {
  JobQuery query{.states = {JobState::kAdmitted, JobState::kRunning}, .limit = JobQuery::kMaxPage};
  do {
    TANDEM_ASSIGN(const JobPage page, store_.List(query));
    for (const JobRecord& job : page.jobs) {
      TANDEM_TRY(store_.Transition(job.id, JobAction::kRequeue, {.reason = "the server was restarted"}));
    }
    query.before = page.next;
  } while (query.before != 0);
  return {};
}

Status Supervisor::CheckSettled(JobId id) const {
  if (!unsettled_.contains(id)) return {};
  return Fail(ErrorCode::kUnavailable, "what became of job {} cannot be written down yet; try again in a while", id);
}

Result<JobRecord> Supervisor::Pause(JobId id) {
  TANDEM_TRY(CheckSettled(id));
  TANDEM_ASSIGN(JobRecord job, store_.Transition(id, JobAction::kPause));
  if (const auto active = active_.find(id); active != active_.end()) {
    Hold(active->second, HoldReason::kPaused);
    memory_.SetPaused(id, true);
  } else {
    memory_.Leave(id);
  }
  return job;
}

Result<JobRecord> Supervisor::Resume(JobId id) {
  TANDEM_TRY(CheckSettled(id));
  const auto active = active_.find(id);
  if (active == active_.end()) {
    TANDEM_ASSIGN(const JobRecord job, store_.Get(id));
    TANDEM_TRY(NextState(job.state, JobAction::kResume));
    return store_.Transition(id, JobAction::kRequeue, {.reason = "resumed"});
  }
  TANDEM_ASSIGN(JobRecord job, store_.Transition(id, JobAction::kResume));
  active->second.trainer->CountFromNow();
  Hold(active->second, std::nullopt);
  memory_.SetPaused(id, false);
  return job;
}

Result<JobRecord> Supervisor::Cancel(JobId id) {
  TANDEM_TRY(CheckSettled(id));
  TANDEM_ASSIGN(JobRecord job, store_.Transition(id, JobAction::kCancel));
  if (const auto active = active_.find(id); active != active_.end()) {
    CountHeld(active->second);
    SaveProfile(active->second);
    active_.erase(active);  // Which kills its trainer.
  }
  memory_.Leave(id);
  metrics_.Ended(id);
  waits_.Forget(id);
  failures_.erase(id);
  return job;
}

void Supervisor::BeginDrain() {
  draining_ = true;
  for (auto& [id, active] : active_) active.trainer->Interrupt();
}

std::vector<int> Supervisor::fds() const {
  std::vector<int> fds;
  for (const auto& [id, active] : active_) fds.push_back(active.trainer->process().events_fd());
  if (memory_.news_fd() >= 0 && !draining_) fds.push_back(memory_.news_fd());
  return fds;
}

std::optional<milliseconds> Supervisor::UntilDue() const {
  if (!active_.empty()) return kTick;
  if (!unsettled_.empty()) return kBetweenSettling;
  if (!next_attempt_ || draining_) return std::nullopt;
  return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(*next_attempt_ - clock_.Now()));
}

void Supervisor::WatchTime() {
  const auto seconds = [](std::chrono::nanoseconds time) {
    return Format("{:.1f}", std::chrono::duration<double>(time).count());
  };
  const auto found = turns_.Turn(clock_.Now(), clock_.WallNow(), !active_.empty());
  if (found.stood_still) {
    LogWarning("trainers were not looked after for a while: the machine, this server or its disk stood still",
               {{"seconds", seconds(*found.stood_still)}});
  }
  if (found.stepped) {
    LogWarning("the time of day was set, or the machine slept", {{"seconds", seconds(*found.stepped)}});
  }
}

void Supervisor::Turn() {
  WatchTime();
  for (auto active = active_.begin(); active != active_.end();) {
    Active& one = active->second;
    // Before its last words are read: what it wrote before it ended is then there.
    const auto exit = one.trainer->process().Poll();
    TakeEvents(one);
    CountHeld(one);
    if (exit) {
      SaveProfile(one);
      metrics_.Stopped(active->first);
      Finish(one, *exit);
      memory_.Leave(active->first);
      active = active_.erase(active);
      continue;
    }
    one.trainer->Watch();
    TellOfDisobedience(one);
    if (clock_.Now() - one.saved_at >= kBetweenSaves) {
      Save(one);
      WatchMemory(one);
    }
    ++active;
  }
  WatchOps();
  WatchMachine();
  SettleDue();
  if (!draining_) StartDue();
  FollowLanes();
}

void Supervisor::WatchMachine() {
  const MonotonicTime now = clock_.Now();
  if (active_.empty() || !machine_.IsDue(now)) return;
  machine_.Look(options_.arbiter ? options_.arbiter->State() : ArbiterState{}, now);
  if (options_.seats != nullptr) options_.seats->Look();
}

void Supervisor::Settle(JobId id, std::function<Status()> change) {
  const Status settled = change();
  if (settled) return;
  LogError("what became of a job cannot be written down",
           {{"job", std::to_string(id)}, {"reason", settled.error().message}});
  // It has been deleted, or is elsewhere by now; anything else may pass.
  if (settled.error().code == ErrorCode::kNotFound || settled.error().code == ErrorCode::kConflict) return;
  unsettled_[id] = std::move(change);
  settle_at_ = clock_.Now() + kBetweenSettling;
}

void Supervisor::SettleDue() {
  if (unsettled_.empty() || clock_.Now() < settle_at_) return;
  for (auto& [id, change] : std::exchange(unsettled_, {})) Settle(id, std::move(change));
}

bool Supervisor::MayStart() {
  // Always, or it would be news for ever.
  if (memory_.TakeNews()) looked_at_ = 0;
  if (active_.size() >= static_cast<std::size_t>(options_.running)) return false;
  return looked_at_ != store_.state_changes() || (next_attempt_ && *next_attempt_ <= clock_.Now());
}

bool Supervisor::ReadDue(std::vector<JobRecord>& due) {
  const MonotonicTime now = clock_.Now();
  next_attempt_ = now + kBetweenSettling;  // When the list cannot be read.
  const auto page = store_.List({.states = {JobState::kQueued}, .limit = JobQuery::kMaxPage});
  if (!page) return false;
  next_attempt_.reset();
  for (const JobRecord& job : page->jobs) {
    if (const MonotonicTime when = waits_.DueAt(job); when <= now) {
      due.push_back(job);
    } else {
      next_attempt_ = std::min(next_attempt_.value_or(when), when);
    }
  }
  std::ranges::sort(due, [](const JobRecord& a, const JobRecord& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.id < b.id;
  });
  return true;
}

void Supervisor::StartDue() {
  if (!MayStart()) return;
  std::vector<JobRecord> due;
  if (!ReadDue(due)) return;
  const bool all = memory_.Offer(due);
  while (active_.size() < static_cast<std::size_t>(options_.running)) {
    const auto id = memory_.Next();
    if (!id) {
      if (all) {
        looked_at_ = store_.state_changes();
      } else {
        next_attempt_ = clock_.Now();
      }
      return;
    }
    auto admitted = store_.Transition(*id, JobAction::kAdmit, {.fixed_threads = options_.fixed_threads});
    if (!admitted) {
      LogError("a job cannot be begun", {{"job", std::to_string(*id)}, {"reason", admitted.error().message}});
      memory_.Leave(*id);
      next_attempt_ = clock_.Now() + kBetweenSettling;
      return;
    }
    waits_.Forget(*id);
    const Status started = StartJob(*std::move(admitted));
    if (started) continue;
    memory_.Leave(*id);
    LogWarning("a trainer could not be started", {{"job", std::to_string(*id)}, {"reason", started.error().message}});
    Settle(*id, [this, id = *id, why = started.error()] { return Retry(id, why); });
    next_attempt_ = clock_.Now();  // To see when it is to be tried again.
  }
}

Status Supervisor::StartJob(JobRecord record) {
  auto job = ParseTrainingJob(record.spec);
  if (!job) return std::unexpected(job.error().ToError());
  const JobFolder folder = JobFolder::Of(options_.state, record.id);
  TrainerRun run{
      .job = *job,
      .model = folder.source_model(),
      .folder = folder.path,
      .data_root = {},
      .threads = ThreadsOf(*job, options_, record.fixed_threads.value_or(options_.fixed_threads)),
      .number = record.id,
  };
  if (const auto bound = memory_.BoundOf(record.id)) run.job.memory = bound;
  TANDEM_ASSIGN(auto trainer, ContainedTrainer::Start(run, Format("job-{}", record.id), options_, clock_,
                                                      PlanOf(record, run.threads)));
  LogInfo("trainer started", {{"job", std::to_string(record.id)}, {"pid", std::to_string(trainer->process().pid())}});
  metrics_.Started(record.id);
  const MonotonicTime now = clock_.Now();
  const JobId id = record.id;
  JobProgress progress = record.progress;
  Active active{.record = std::move(record),
                .job = *std::move(job),
                .folder = folder,
                .trainer = std::move(trainer),
                .progress = std::move(progress),
                .saved_at = now,
                .held_until = now,
                .ops = OpWatch(options_.arbiter ? options_.arbiter->policy().gated_ops() : GatedOps::kNone)};
  active_.emplace(id, std::move(active));
  return {};
}

void Supervisor::Hold(Active& active, std::optional<HoldReason> reason) {
  CountHeld(active);
  active.hold = reason;
  active.held_until = clock_.Now();
  active.trainer->Pause(reason.has_value());
}

void Supervisor::CountHeld(Active& active) {
  const MonotonicTime now = clock_.Now();
  const bool waits = active.hold && active.trainer->process().board().Signs().held;
  if (waits) metrics_.Held(active.record.id, *active.hold, now - active.held_until);
  active.held_until = now;
  for (const auto& [reason, total] : active.trainer->HeldTimes()) {
    auto& counted = active.counted_holds[reason];
    if (total <= counted) continue;
    metrics_.Held(active.record.id, reason, total - std::exchange(counted, total));
  }
}

// A job may be told to wait when its trainer is just about done.
Status Supervisor::BringToRunning(JobId id) {
  TANDEM_ASSIGN(const JobRecord job, store_.Get(id));
  if (job.state != JobState::kPaused && job.state != JobState::kAdmitted) return {};
  TANDEM_TRY(store_.Transition(id, job.state == JobState::kPaused ? JobAction::kResume : JobAction::kStart));
  return {};
}

void Supervisor::Finish(Active& active, const TrainerExit& exit) {
  Save(active);
  const JobId id = active.record.id;
  LogInfo("trainer ended", {{"job", std::to_string(id)}, {"how", exit.clean() ? "well" : exit.Words()}});
  if (active.to_wait) {
    return Settle(id, [this, progress = active.progress, id] {
      return Requeue(id, progress, "needs more memory than it was begun with");
    });
  }
  if (active.end && !active.trainer->killed()) {
    const EndEvent& end = *active.end;
    switch (end.outcome) {
      case TrainerOutcome::kFinished:
      case TrainerOutcome::kStoppedEarly:
        active.progress.step = end.step;
        if (end.best) active.progress.best_metric = end.best;
        return Settle(id, [this, job = active.job, progress = active.progress, id, end] {
          return Succeed(id, job, progress, end);
        });
      case TrainerOutcome::kInterrupted:
        return Settle(id, [this, progress = active.progress, id] {
          return Requeue(id, progress, "interrupted; goes on from its checkpoint");
        });
      case TrainerOutcome::kFailed: return Settle(id, [this, id, why = end.error] { return Retry(id, why); });
    }
  }
  Settle(id, [this, id, why = active.trainer->WhyEnded(exit)] { return Retry(id, why); });
}

Status Supervisor::Succeed(JobId id, const TrainingJob& job, const JobProgress& progress, const EndEvent& end) {
  TANDEM_TRY(BringToRunning(id));
  const bool early = end.outcome == TrainerOutcome::kStoppedEarly;
  const char* const reason = early ? "stopped early: evaluations were no longer better" : "";
  TANDEM_ASSIGN(const JobRecord done, store_.Transition(id, JobAction::kSucceed,
                                                        {.reason = reason,
                                                         .progress = progress,
                                                         .publish_due = job.publish != PublishRule::kNever,
                                                         .baseline = end.baseline}));
  failures_.erase(id);
  metrics_.Ended(id);
  succeeded_(done, job);
  return {};
}

Status Supervisor::Requeue(JobId id, const JobProgress& progress, const char* why) {
  TANDEM_ASSIGN(const JobRecord current, store_.Get(id));
  if (current.state == JobState::kPaused) return {};  // It waits on, without a trainer.
  TANDEM_TRY(store_.Transition(id, JobAction::kRequeue, {.reason = why, .progress = progress}));
  return {};
}

Status Supervisor::Retry(JobId id, const Error& why) {
  TANDEM_ASSIGN(const JobRecord current, store_.Get(id));
  if (HasEnded(current.state)) return {};
  const bool last = current.retries + 1 >= options_.attempts;
  if (last || IsFinal(why.code)) {
    const std::string tail = last ? LogTail(JobFolder::Of(options_.state, id).path, kReasonLogBytes) : "";
    const std::string attempts = last ? Format(" ({} attempts)", current.retries + 1) : "";
    const std::string reason = why.message + attempts + (tail.empty() ? "" : "; the end of its log: " + tail);
    TANDEM_TRY(store_.Transition(id, JobAction::kFail, {.reason = reason}));
    failures_.erase(id);
    metrics_.Ended(id);
    return {};
  }
  // One that is paused stays so, without a trainer.
  if (current.state == JobState::kPaused) {
    AddEvent(id, "trainer_lost", Format(R"({{"why":{}}})", JsonString(why.message)));
    return {};
  }
  const milliseconds wait = BackOff(options_.first_backoff, options_.last_backoff, failures_[id]);
  TANDEM_TRY(store_.Transition(id, JobAction::kRetry,
                               {.reason = why.message, .next_attempt_at = WallMs(clock_) + wait.count()}));
  waits_.Begin(id, wait);
  metrics_.Retried(id);
  ++failures_[id];
  return {};
}

}  // namespace tandem::jobs
