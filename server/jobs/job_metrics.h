#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/training_memory.h"
#include "colocation/hold_reason.h"
#include "colocation/trainer_board.h"
#include "profiler/op_classifier.h"
#include "server/jobs/job_record.h"

namespace tandem::jobs {

enum class PublishResult { kPublished, kNotBetter, kFailed, kRolledBack };
inline constexpr std::array kPublishResults = {PublishResult::kPublished, PublishResult::kNotBetter,
                                               PublishResult::kFailed, PublishResult::kRolledBack};
[[nodiscard]] std::string_view PublishResultName(PublishResult result);

// What was counted for one job since the server began, or since the job was last forgotten. Nothing but the loss ever
// goes down: steps that are done again after a trainer was lost count again.
struct JobTotals {
  JobId job = 0;
  std::int64_t iterations = 0;
  std::int64_t attempts = 0;  // Trainers that were started.
  std::int64_t retries = 0;   // Of them, those that failed and are followed by another.
  std::int64_t checkpoints = 0;
  std::map<HoldReason, std::chrono::nanoseconds> held;
  std::optional<double> loss;
  // By how much the estimate of its memory was wrong (EstimateError()), where both are known.
  std::optional<double> persistent_error;
  std::optional<double> ephemeral_error;
};

struct TrainingTotals {
  std::map<JobState, std::int64_t> states;  // How many jobs there are; empty before the first look.
  std::vector<JobTotals> jobs;              // By number.
  std::map<PublishResult, std::int64_t> publishes;
  std::map<OpClass, std::int64_t> classified;  // Operators that came to be taken for this after they were for another.
  AcknowledgementTimes acknowledgements;
};

// What /metrics shows of training jobs. Written by the jobs thread, read by whoever is scraped. Thread-safe. Bounded: a
// job is forgotten when it is deleted, kKeepEnded after its end, and, of those without a trainer, the one that was
// counted longest ago when there are more than kMostJobs.
class JobMetrics {
 public:
  static constexpr std::chrono::minutes kKeepEnded{15};
  static constexpr std::size_t kMostJobs = 200;

  // The clock is borrowed and outlives it.
  explicit JobMetrics(const Clock& clock) : clock_(clock) {}

  void Started(JobId job) EXCLUDES(mu_);
  void Retried(JobId job) EXCLUDES(mu_);
  void Iterated(JobId job, std::int64_t steps, std::optional<double> loss) EXCLUDES(mu_);
  void Checkpointed(JobId job) EXCLUDES(mu_);
  void Estimated(JobId job, const MemoryEstimate& estimate, const MemoryUse& use) EXCLUDES(mu_);
  void Held(JobId job, HoldReason reason, std::chrono::nanoseconds time) EXCLUDES(mu_);
  // Its trainer has gone; another may follow.
  void Stopped(JobId job) EXCLUDES(mu_);
  // The job has ended, or is deleted.
  void Ended(JobId job) EXCLUDES(mu_);
  void Forget(JobId job) EXCLUDES(mu_);
  void Count(PublishResult result) EXCLUDES(mu_);
  void Classified(OpClass op_class) EXCLUDES(mu_);
  // Of a trainer so far, and before; nothing of it has gone back.
  void Acknowledged(const AcknowledgementTimes& now, const AcknowledgementTimes& before) EXCLUDES(mu_);
  void SetStates(std::map<JobState, std::int64_t> states) EXCLUDES(mu_);

  [[nodiscard]] TrainingTotals Read() const EXCLUDES(mu_);

 private:
  struct Entry {
    JobTotals totals;
    bool active = false;  // Has a trainer.
    MonotonicTime touched;
    std::optional<MonotonicTime> ended;
  };

  Entry& Find(JobId job) REQUIRES(mu_);
  [[nodiscard]] bool IsOld(const Entry& entry, MonotonicTime now) const;

  // Constant after construction.
  const Clock& clock_;

  mutable Mutex mu_;
  std::map<JobId, Entry> jobs_ GUARDED_BY(mu_);
  std::map<PublishResult, std::int64_t> publishes_ GUARDED_BY(mu_);
  std::map<OpClass, std::int64_t> classified_ GUARDED_BY(mu_);
  AcknowledgementTimes acknowledgements_ GUARDED_BY(mu_);
  std::map<JobState, std::int64_t> states_ GUARDED_BY(mu_);
};

}  // namespace tandem::jobs
