#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/jobs/attempt_waits.h"
#include "server/jobs/contained_trainer.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/job_memory.h"
#include "server/jobs/job_metrics.h"
#include "server/jobs/job_options.h"
#include "server/jobs/job_store.h"
#include "server/jobs/machine_watch.h"
#include "server/jobs/op_watch.h"
#include "server/jobs/turn_watch.h"

namespace tandem::jobs {

// Runs the trainers of queued jobs: starts them in order of priority and age, writes down what they tell, lets them
// wait, and tries again after a while when one fails. What a trainer did stays in its checkpoints, so a job goes on
// wherever its last trainer ended. One thread (the jobs thread), which must live as long as the trainers.
class Supervisor {
 public:
  // `succeeded` is told of each job that has its model trained. All borrowed; they outlive it.
  Supervisor(const JobOptions& options, JobStore& store, JobMetrics& metrics, const Clock& clock,
             std::function<void(const JobRecord&, const TrainingJob&)> succeeded);
  // Kills the trainers that still run; their jobs go on when a server comes back.
  ~Supervisor();

  // Jobs that a server left behind in mid-run are queued again. Once, before anything else.
  [[nodiscard]] Status Recover();

  [[nodiscard]] Result<JobRecord> Pause(JobId id);
  [[nodiscard]] Result<JobRecord> Resume(JobId id);
  [[nodiscard]] Result<JobRecord> Cancel(JobId id);

  // What the operators of a job's trainer take, or those of its last one; kNotFound when none has run yet.
  [[nodiscard]] Result<Json::Value> Profile(JobId id) const;
  // What the operators of the trainers that run do to requests for a model: OpWatch::Beside() with their "job".
  [[nodiscard]] Json::Value Beside(const std::string& model) const;
  // Of each trainer that runs, what its operators did since then, as far as that is kept.
  [[nodiscard]] std::vector<RecentOps> OpsSince(MonotonicTime since) const;

  // With the reason why it waits, if it does for memory, as JobMemory::WhyWaiting() has it.
  [[nodiscard]] JobRecord Explained(JobRecord record, bool in_detail = true) const;
  // kTooLarge for a job that would wait for memory for ever.
  [[nodiscard]] Status CheckEverFits(const TrainingJob& job, const std::filesystem::path& model) const {
    return memory_.CheckEverFits(job, model);
  }

  // What is due: starts, reads, reaps, retries. Then there is nothing to do until one of fds() is readable, or
  // UntilDue() has passed, if it is anything.
  void Turn();
  [[nodiscard]] std::vector<int> fds() const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> UntilDue() const;

  // From now on no trainer is started, and those that run write a checkpoint and end.
  void BeginDrain();
  [[nodiscard]] bool drained() const { return active_.empty(); }

 private:
  // A trainer and what is known of its job.
  struct Active {
    JobRecord record;
    TrainingJob job;
    JobFolder folder;
    std::unique_ptr<ContainedTrainer> trainer;
    JobProgress progress;
    bool progress_unsaved = false;
    std::vector<SeriesPoint> losses;  // Not in the store yet.
    std::vector<SeriesPoint> rates;
    MonotonicTime saved_at;
    std::optional<EndEvent> end;
    bool to_wait = false;                    // For memory, as it needs more than it was begun with: it is being ended.
    std::optional<std::int64_t> first_step;  // That this trainer began with.
    std::optional<MemoryEstimate> estimate;
    std::int64_t counted_step = 0;                                 // Up to here its steps are in the metrics.
    std::optional<HoldReason> hold;                                // Why it is told to wait.
    MonotonicTime held_until;                                      // Up to here its waiting is.
    std::map<HoldReason, std::chrono::nanoseconds> counted_holds;  // Of those by the arbiter.
    OpWatch ops;
    std::chrono::nanoseconds stopped{0};         // By signal, as of the last look at its operators.
    std::vector<OpWatch::Change> class_changes;  // Not told yet.
    MonotonicTime classes_told;
    AcknowledgementTimes counted_acknowledgements;
  };

  // Says in the log what else explains what is seen of trainers and times.
  void WatchTime();
  void StartDue();
  // Whether anything has changed since it was last found that nobody more can be started.
  [[nodiscard]] bool MayStart();
  // Those that are queued and wait for nothing else, the first to begin first; notes when the next one is due. False:
  // they cannot be read.
  [[nodiscard]] bool ReadDue(std::vector<JobRecord>& due);
  void WatchMemory(Active& active);
  [[nodiscard]] Status StartJob(JobRecord record);  // It has been admitted.
  // How a job takes turns, whose trainer has so many threads.
  [[nodiscard]] TurnPlan PlanOf(const JobRecord& record, int threads) const;
  // Lanes are as long as was promised, and used where jobs share them.
  void FollowLanes();
  void TakeEvents(Active& active);
  void Take(Active& active, const PlanEvent& event);
  void Take(Active& active, const StepEvent& event);
  void Take(Active& active, const EvaluationEvent& event);
  void Take(Active& active, const CheckpointEvent& event);
  void Take(Active& active, const SkippedEvent& event);
  void Take(Active& active, const EstimateEvent& event);
  void Take(Active& active, const MemoryEvent& event);
  void Take(Active& active, const EndEvent& event);
  // What its trainer did with its orders but obey them.
  void TellOfDisobedience(Active& active);
  void Save(Active& active);
  void Hold(Active& active, std::optional<HoldReason> reason);
  // Adds the time since the last look to what it has waited, if it does.
  void CountHeld(Active& active);
  void CountSteps(Active& active, std::int64_t step);
  // Looks at the operators of all trainers, when that is due.
  void WatchOps();
  void WatchOps(Active& active, std::span<const RunSample> runs);
  void WatchMachine();
  void TellClasses(Active& active, bool last);
  void SaveProfile(Active& active);
  void Finish(Active& active, const TrainerExit& exit);
  [[nodiscard]] Status Succeed(JobId id, const TrainingJob& job, const JobProgress& progress, const EndEvent& end);
  [[nodiscard]] Status Requeue(JobId id, const JobProgress& progress, const char* why);
  [[nodiscard]] Status BringToRunning(JobId id);
  // Queues a job again that has failed, after a while, or ends it when that would not help or was tried often enough.
  [[nodiscard]] Status Retry(JobId id, const Error& why);
  // Writes down what became of a job; later, when the disk does not let us now. Without it the job would be running for
  // ever, and nobody would run it.
  void Settle(JobId id, std::function<Status()> change);
  // kUnavailable for a job that is not settled.
  [[nodiscard]] Status CheckSettled(JobId id) const;
  void SettleDue();
  void AddEvent(JobId id, const char* kind, const std::string& json);

  // Constant after construction.
  const JobOptions& options_;
  JobStore& store_;
  JobMetrics& metrics_;
  const Clock& clock_;
  const std::function<void(const JobRecord&, const TrainingJob&)> succeeded_;

  // Jobs thread only.
  JobMemory memory_;  // Before the trainers, which have what it promised.
  std::map<JobId, Active> active_;
  std::uint64_t looked_at_ = 0;  // Changes of states, as of the last look for jobs to start; 0: look again.
  AttemptWaits waits_;
  TurnWatch turns_;
  MachineWatch machine_;
  MonotonicTime ops_looked_;
  std::optional<MonotonicTime> next_attempt_;  // Of the first that is not due yet.
  std::map<JobId, std::int64_t> failures_;     // Of trainers since the last checkpoint of their job.
  std::map<JobId, std::function<Status()>> unsettled_;
  MonotonicTime settle_at_;
  bool draining_ = false;
};

}  // namespace tandem::jobs
