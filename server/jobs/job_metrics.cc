#include "server/jobs/job_metrics.h"

#include <algorithm>
#include <utility>

namespace tandem::jobs {

std::string_view PublishResultName(PublishResult result) {
  switch (result) {
    case PublishResult::kPublished: return "published";
    case PublishResult::kNotBetter: return "not_better";
    case PublishResult::kFailed: return "failed";
    case PublishResult::kRolledBack: return "rolled_back";
  }
  return "";
}

bool JobMetrics::IsOld(const Entry& entry, MonotonicTime now) const {
  return entry.ended && now - *entry.ended >= kKeepEnded;
}

JobMetrics::Entry& JobMetrics::Find(JobId job) {
  const MonotonicTime now = clock_.Now();
  std::erase_if(jobs_, [&](const auto& named) { return IsOld(named.second, now); });
  Entry& entry = jobs_[job];
  entry.totals.job = job;
  entry.touched = now;
  while (jobs_.size() > kMostJobs) {
    auto oldest = jobs_.end();
    for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
      if (it->second.active || it->first == job) continue;
      if (oldest == jobs_.end() || it->second.touched < oldest->second.touched) oldest = it;
    }
    if (oldest == jobs_.end()) break;
    jobs_.erase(oldest);
  }
  return entry;
}

void JobMetrics::Started(JobId job) {
  const MutexLock lock(mu_);
  Entry& entry = Find(job);
  entry.active = true;
  ++entry.totals.attempts;
}

void JobMetrics::Retried(JobId job) {
  const MutexLock lock(mu_);
  ++Find(job).totals.retries;
}

void JobMetrics::Iterated(JobId job, std::int64_t steps, std::optional<double> loss) {
  const MutexLock lock(mu_);
  JobTotals& totals = Find(job).totals;
  totals.iterations += std::max<std::int64_t>(0, steps);
  if (loss) totals.loss = loss;
}

void JobMetrics::Checkpointed(JobId job) {
  const MutexLock lock(mu_);
  ++Find(job).totals.checkpoints;
}

void JobMetrics::Estimated(JobId job, const MemoryEstimate& estimate, const MemoryUse& use) {
  const MutexLock lock(mu_);
  JobTotals& totals = Find(job).totals;
  totals.persistent_error = EstimateError(estimate.persistent.total(), use.persistent);
  totals.ephemeral_error = EstimateError(estimate.ephemeral, use.ephemeral);
}

void JobMetrics::Held(JobId job, HoldReason reason, std::chrono::nanoseconds time) {
  const MutexLock lock(mu_);
  Find(job).totals.held[reason] += std::max(std::chrono::nanoseconds(0), time);
}

void JobMetrics::Stopped(JobId job) {
  const MutexLock lock(mu_);
  if (const auto found = jobs_.find(job); found != jobs_.end()) found->second.active = false;
}

void JobMetrics::Ended(JobId job) {
  const MutexLock lock(mu_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  found->second.active = false;
  found->second.ended = clock_.Now();
}

void JobMetrics::Forget(JobId job) {
  const MutexLock lock(mu_);
  jobs_.erase(job);
}

void JobMetrics::Classified(OpClass op_class) {
  const MutexLock lock(mu_);
  ++classified_[op_class];
}

void JobMetrics::Acknowledged(const AcknowledgementTimes& now, const AcknowledgementTimes& before) {
  const MutexLock lock(mu_);
  for (std::size_t i = 0; i < now.counts.size(); ++i) {
    acknowledgements_.counts[i] += now.counts[i] - before.counts[i];
  }
  acknowledgements_.sum += now.sum - before.sum;
}

void JobMetrics::Count(PublishResult result) {
  const MutexLock lock(mu_);
  ++publishes_[result];
}

void JobMetrics::SetStates(std::map<JobState, std::int64_t> states) {
  const MutexLock lock(mu_);
  states_ = std::move(states);
}

TrainingTotals JobMetrics::Read() const {
  const MutexLock lock(mu_);
  const MonotonicTime now = clock_.Now();
  TrainingTotals totals{.states = states_,
                        .jobs = {},
                        .publishes = publishes_,
                        .classified = classified_,
                        .acknowledgements = acknowledgements_};
  for (const auto& [id, entry] : jobs_) {
    if (!IsOld(entry, now)) totals.jobs.push_back(entry.totals);
  }
  return totals;
}

}  // namespace tandem::jobs
