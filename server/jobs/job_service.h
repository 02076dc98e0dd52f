#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "api/base/training_memory.h"
#include "server/core/bulk_thread.h"
#include "server/jobs/job_metrics.h"
#include "server/jobs/job_options.h"
#include "server/jobs/job_store.h"
#include "server/jobs/publish_order.h"
#include "server/jobs/publisher.h"
#include "server/jobs/supervisor.h"
#include "server/repository/model_repository.h"

namespace tandem::jobs {

struct Submission {
  TrainingJob job;
  std::string owner;
  std::string idempotency_key;  // Empty: none.
};

// A piece of a trainer's log.
struct LogPiece {
  std::string text;
  std::uint64_t next = 0;  // Where the next piece begins.
  bool ended = false;      // Nothing will follow: the job has ended and this is the end of its log.
};

// All that can be done with training jobs. Any thread may call; the work is done on the jobs thread (and, for
// publishing and for estimates, on one more each), in the order of the calls, and `done` is called there, once. It must
// not block. After BeginDrain() what would change something is refused with kUnavailable.
class JobService {
 public:
  template <typename T>
  using Done = std::move_only_function<void(Result<T>)>;

  // Opens the state and continues the jobs that are there. The repository and the clock are borrowed.
  [[nodiscard]] static Result<std::unique_ptr<JobService>> Start(JobOptions options,
                                                                 repository::ModelRepository& repository,
                                                                 const Clock& clock);
  // Kills the trainers that still run; their jobs go on when a server comes back.
  ~JobService();
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;

  // The repository has loaded its models: from now on jobs that succeed are published, beginning with those that a
  // server left behind unpublished.
  void ModelsLoaded();

  // Checks the job against the model and the data root, and queues it. kUnsupported names each operator that cannot be
  // trained, with its node.
  void Submit(Submission submission, Done<JobStore::Submitted> done);
  // What a job would take of memory, after the same checks; nothing is queued or kept. kUnavailable when many are asked
  // for at once.
  void Estimate(TrainingJob job, Done<MemoryEstimate> done);
  static constexpr int kMostEstimates = 8;
  void Get(JobId id, Done<JobRecord> done);
  void List(JobQuery query, Done<JobPage> done);
  void Pause(JobId id, Done<JobRecord> done);
  void Resume(JobId id, Done<JobRecord> done);
  void Cancel(JobId id, Done<JobRecord> done);
  // With its folder; only once it has ended.
  void Delete(JobId id, Done<void> done);
  // The trained model becomes the next version; kConflict unless the job has succeeded.
  void Publish(JobId id, Done<JobRecord> done);
  void RollBack(JobId id, Done<JobRecord> done);
  void Checkpoints(JobId id, Done<std::vector<CheckpointRecord>> done);
  void Series(JobId id, Done<std::map<std::string, std::vector<SeriesPoint>>> done);

  // What the operators of its trainer take, as ProfileToJson() has it.
  void Profile(JobId id, Done<Json::Value> done);
  // What the operators of all trainers that run do to requests for a model, as OpWatch::Beside() has it.
  void Beside(std::string model, Done<Json::Value> done);
  // Of each trainer that runs, what its operators did since then, as far as that is kept.
  void OpsSince(MonotonicTime since, Done<std::vector<RecentOps>> done);

  // When a follower wants its next turn at the latest; nothing when it is over.
  using NextTurn = std::optional<std::chrono::milliseconds>;
  // For those who follow a job: `work` runs on the jobs thread, at once and then whenever it wants, or earlier, and
  // soon after anything was written down. False when there are too many already.
  [[nodiscard]] bool Follow(std::move_only_function<NextTurn()> work);
  static constexpr int kMaxFollowers = 256;
  // What they may ask there; these wait for the disk.
  [[nodiscard]] Result<JobRecord> GetNow(JobId id) const;
  [[nodiscard]] Result<std::vector<JobEvent>> EventsNow(std::optional<JobId> id, std::int64_t after, int limit) const;
  // At most kMaxLogPiece bytes from `offset` on.
  [[nodiscard]] Result<LogPiece> LogNow(JobId id, std::uint64_t offset) const;
  static constexpr std::size_t kMaxLogPiece = 64 * 1024;
  // The file of the trained model; kConflict unless the job has succeeded.
  [[nodiscard]] Result<std::filesystem::path> ModelNow(JobId id) const;
  [[nodiscard]] const Clock& clock() const { return clock_; }

  // For /metrics; does not wait for the disk.
  [[nodiscard]] TrainingTotals Totals() const { return metrics_.Read(); }

  // Trainers write a checkpoint and end; false when they have not by the time `patience` is over.
  void BeginDrain();
  [[nodiscard]] bool WaitDrained(std::chrono::milliseconds patience);

 private:
  using Work = std::move_only_function<void()>;

  JobService(JobOptions options, repository::ModelRepository& repository, const Clock& clock);
  void Post(Work work) EXCLUDES(mu_);
  // Runs `work`, which takes `done` over, on the jobs thread; what changes something is refused while draining.
  template <typename T, typename Function>
  void Begin(bool changes, Done<T> done, Function work);
  // The same for work that is done when it returns its result.
  template <typename T, typename Function>
  void Ask(bool changes, Done<T> done, Function work);
  void Run() EXCLUDES(mu_);
  void RunWork() EXCLUDES(mu_);
  void TurnFollowers();
  void Wait();
  [[nodiscard]] Result<JobStore::Submitted> SubmitNow(const Submission& submission);
  // Publishes by itself what is due, once models are there; what cannot be now stays due.
  void PublishDue(const JobRecord& record, const TrainingJob& job);
  // Refuses a job whose publishing is under way already.
  [[nodiscard]] Status CheckNotBusy(JobId id) const;
  void StartPublishing(PublishOrder order, Done<JobRecord> done);
  [[nodiscard]] Result<JobRecord> EndPublishing(JobId id, const Result<PublishOutcome>& outcome);
  void StartRollBack(const JobRecord& record, Done<JobRecord> done);
  void CountStates();

  // Constant after construction.
  const JobOptions options_;
  repository::ModelRepository& repository_;
  const Clock& clock_;
  std::unique_ptr<JobStore> store_;
  Publisher publisher_;
  JobMetrics metrics_;
  int wake_fd_ = -1;
  std::atomic<bool> draining_{false};
  std::atomic<bool> drained_{false};
  std::atomic<int> follower_count_{0};

  // Jobs thread only.
  std::unique_ptr<Supervisor> supervisor_;
  std::vector<std::move_only_function<NextTurn()>> followers_;
  NextTurn next_turn_;  // The soonest of theirs.
  bool models_loaded_ = false;
  std::set<JobId> busy_;               // Being published or rolled back.
  int estimates_ = 0;                  // Asked for and not answered.
  std::uint64_t counted_changes_ = 0;  // Of states, that the metrics know.

  Mutex mu_;
  std::deque<Work> work_ GUARDED_BY(mu_);
  bool ending_ GUARDED_BY(mu_) = false;

  std::unique_ptr<BulkThread> publishing_;
  std::unique_ptr<BulkThread> estimating_;
  std::thread thread_;  // Last: it uses the others.
};

template <typename T, typename Function>
void JobService::Begin(bool changes, Done<T> done, Function work) {
  Post([this, changes, done = std::move(done), work = std::move(work)]() mutable {
    if (changes && draining_.load()) return done(Fail(ErrorCode::kUnavailable, "the server is stopping"));
    work(std::move(done));
  });
}

template <typename T, typename Function>
void JobService::Ask(bool changes, Done<T> done, Function work) {
  Begin<T>(changes, std::move(done), [work = std::move(work)](Done<T> answer) mutable { answer(work()); });
}

}  // namespace tandem::jobs
