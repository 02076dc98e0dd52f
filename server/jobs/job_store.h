#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "server/jobs/job_record.h"
#include "server/jobs/sqlite.h"
#include "server/jobs/state_lock.h"

namespace tandem::jobs {

// How much is kept.
struct StoreLimits {
  std::int64_t jobs = 10'000;
  std::int64_t events_per_job = 1000;
  std::size_t points_per_series = 4000;  // At least 4.
  std::size_t series_per_job = 64;
};

// The jobs of a server and what became of them, in DIRECTORY/jobs.db. Only the server opens it, once; a second one is
// refused. Every call is all or nothing. When a call that changes a state, a checkpoint or the list of jobs returns,
// the change is on the disk; progress, events and points that were reported since may be lost with the power, not with
// the process. Any thread; calls wait for the disk, so none belongs on an I/O thread.
class JobStore {
 public:
  // `clock` is borrowed and outlives the store.
  [[nodiscard]] static Result<std::unique_ptr<JobStore>> Open(const std::filesystem::path& directory,
                                                              const Clock& clock, StoreLimits limits = {});

  // A new job in state queued. The same owner, key and spec again give the job that is there; another spec under the
  // same key is kConflict. kUnavailable when there are as many jobs as may be.
  struct Submitted {
    JobRecord job;
    bool is_new = true;
  };
  [[nodiscard]] Result<Submitted> Submit(const NewJob& job);
  [[nodiscard]] Result<JobRecord> Get(JobId id) const;
  [[nodiscard]] Result<JobPage> List(const JobQuery& query) const;
  [[nodiscard]] Result<std::map<JobState, std::int64_t>> CountByState() const;

  // The job after the action (server/jobs/job_state.h); kConflict when its state does not allow it. Adds an event of
  // kind "state": {"from": …, "to": …, "action": …, "reason": …}.
  [[nodiscard]] Result<JobRecord> Transition(JobId id, JobAction action, const TransitionFields& fields = {});
  // kConflict once the job has ended.
  [[nodiscard]] Status UpdateProgress(JobId id, const JobProgress& progress);
  // What is known of the memory that its trainer takes, as JSON; kConflict once the job has ended.
  [[nodiscard]] Status SetMemory(JobId id, const std::string& memory);
  // Of a job in any state: it can be published after its end. Empty: it was rolled back. Adds an event of kind
  // "published" or "rolled_back": {"version": …, "note": …}. Either way publishing is no longer due.
  [[nodiscard]] Status SetPublishedVersion(JobId id, const std::string& version, const std::string& note = "");
  // Publishing is no longer due, since it came to nothing; adds an event of that kind: {"why": …}.
  [[nodiscard]] Status GiveUpPublishing(JobId id, std::string_view kind, std::string_view why);
  // With all that belongs to it; kConflict unless it has ended. The files of its checkpoints are the caller's.
  [[nodiscard]] Status Delete(JobId id);

  // `body` is JSON. Beyond StoreLimits::events_per_job the job's oldest go. Gives the event's sequence number.
  [[nodiscard]] Result<std::int64_t> AddEvent(JobId job, std::string_view kind, std::string_view body);
  // The first `limit` events after that sequence number, of one job or of all, oldest first.
  [[nodiscard]] Result<std::vector<JobEvent>> EventsAfter(std::optional<JobId> job, std::int64_t sequence,
                                                          int limit) const;

  // Points with ascending steps. A step at or before the last one replaces what was there from it on: the job went back
  // to a checkpoint. A series that grows too long is thinned evenly; its newest point is always there. What is not
  // finite is left out.
  [[nodiscard]] Status AddSeriesPoints(JobId job, const std::string& name, std::span<const SeriesPoint> points);
  // By name, in the order of steps.
  [[nodiscard]] Result<std::map<std::string, std::vector<SeriesPoint>>> Series(JobId job) const;

  // Replaces one of the same step. `time` is set here.
  [[nodiscard]] Status AddCheckpoint(const CheckpointRecord& checkpoint);
  [[nodiscard]] Status MarkCheckpointBad(JobId job, std::int64_t step);
  [[nodiscard]] Status RemoveCheckpoint(JobId job, std::int64_t step);
  // Newest first, bad ones included.
  [[nodiscard]] Result<std::vector<CheckpointRecord>> Checkpoints(JobId job) const;

  // Changes whenever a job comes, goes or changes its state.
  [[nodiscard]] std::uint64_t state_changes() const { return state_changes_.load(); }

  static constexpr std::size_t kMaxKeyBytes = 255;
  static constexpr std::size_t kMaxKindBytes = 64;
  static constexpr std::size_t kMaxBodyBytes = 64 << 10;

 private:
  struct SeriesRow {
    std::int64_t id = 0;
    std::int64_t spacing = 1;  // Steps between two points, but for the newest.
  };

  JobStore(StateLock lock, std::unique_ptr<Database> database, const Clock& clock, StoreLimits limits);

  [[nodiscard]] std::int64_t Now() const;  // Milliseconds of wall time.
  [[nodiscard]] Result<JobRecord> Read(JobId id) const REQUIRES(mu_);
  [[nodiscard]] Status CheckExists(JobId id) const REQUIRES(mu_);
  [[nodiscard]] Result<std::optional<JobRecord>> FindByKey(const NewJob& job, const std::string& hash) const
      REQUIRES(mu_);
  [[nodiscard]] Status WriteProgress(JobId id, const JobProgress& progress) REQUIRES(mu_);
  [[nodiscard]] Result<std::int64_t> InsertEvent(JobId job, std::string_view kind, std::string_view body) REQUIRES(mu_);
  [[nodiscard]] Result<SeriesRow> FindOrAddSeries(JobId job, const std::string& name) REQUIRES(mu_);
  [[nodiscard]] Status ThinSeries(SeriesRow series) REQUIRES(mu_);

  // Constant after construction.
  const StateLock lock_;
  const Clock& clock_;
  const StoreLimits limits_;

  std::atomic<std::uint64_t> state_changes_{1};

  mutable Mutex mu_;
  const std::unique_ptr<Database> database_ PT_GUARDED_BY(mu_);
};

}  // namespace tandem::jobs
