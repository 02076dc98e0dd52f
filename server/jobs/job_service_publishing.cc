// The part of JobService that publishes: asks come and end on the jobs thread, the work is done on the publish thread.

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "api/wire/training_job_json.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/job_service.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

Result<PublishOrder> OrderFor(const JobRecord& record) {
  if (record.state != JobState::kSucceeded) {
    return Fail(ErrorCode::kConflict, "the job is {}; only one that has succeeded can be published",
                JobStateName(record.state));
  }
  if (!record.published_version.empty()) {
    return Fail(ErrorCode::kConflict, "the job is published already, as version {}", record.published_version);
  }
  auto job = ParseTrainingJob(record.spec);
  if (!job) return std::unexpected(job.error().ToError());
  return PublishOrder{.record = record, .job = *std::move(job), .only_if_better = false};
}

}  // namespace

Status JobService::CheckNotBusy(JobId id) const {
  if (!busy_.contains(id)) return {};
  return Fail(ErrorCode::kConflict, "job {} is being published or rolled back", id);
}

void JobService::Publish(JobId id, Done<JobRecord> done) {
  Begin<JobRecord>(true, std::move(done), [this, id](Done<JobRecord> answer) {
    const auto record = store_->Get(id);
    if (!record) return answer(std::unexpected(record.error()));
    if (!models_loaded_) return answer(Fail(ErrorCode::kUnavailable, "the models are still being loaded"));
    auto order = OrderFor(*record);
    if (!order) return answer(std::unexpected(order.error()));
    StartPublishing(*std::move(order), std::move(answer));
  });
}

void JobService::RollBack(JobId id, Done<JobRecord> done) {
  Begin<JobRecord>(true, std::move(done), [this, id](Done<JobRecord> answer) {
    const auto record = store_->Get(id);
    if (!record) return answer(std::unexpected(record.error()));
    if (record->published_version.empty()) {
      return answer(Fail(ErrorCode::kConflict, "the job is not published, so there is nothing to roll back"));
    }
    StartRollBack(*record, std::move(answer));
  });
}

void JobService::StartPublishing(PublishOrder order, Done<JobRecord> done) {
  const JobId id = order.record.id;
  if (const Status free = CheckNotBusy(id); !free) return done(std::unexpected(free.error()));
  busy_.insert(id);
  publishing_->Do([this, order = std::move(order), done = std::move(done)]() mutable {
    auto outcome = CarryOut(order, {publisher_, options_, clock_, draining_});
    Post([this, id = order.record.id, outcome = std::move(outcome), done = std::move(done)]() mutable {
      busy_.erase(id);
      done(EndPublishing(id, outcome));
    });
  });
}

Result<JobRecord> JobService::EndPublishing(JobId id, const Result<PublishOutcome>& outcome) {
  if (!outcome) {
    // What only failed because the server stops is tried again by the next one.
    if (draining_.load()) return std::unexpected(outcome.error());
    metrics_.Count(PublishResult::kFailed);
    const Error& why = outcome.error();
    if (why.code == ErrorCode::kUnavailable || why.code == ErrorCode::kNotFound) {
      // So is what the model was not loaded for.
      TANDEM_TRY(store_->AddEvent(id, "publish_failed", Format(R"({{"why":{}}})", JsonString(why.message))));
    } else {
      TANDEM_TRY(store_->GiveUpPublishing(id, "publish_failed", why.message));
    }
    // The job is there.
    return Fail(why.code == ErrorCode::kNotFound ? ErrorCode::kConflict : why.code, "{}", why.message);
  }
  if (!outcome->published) {
    metrics_.Count(PublishResult::kNotBetter);
    TANDEM_TRY(store_->GiveUpPublishing(id, "not_published", outcome->why_not));
    return store_->Get(id);
  }
  metrics_.Count(PublishResult::kPublished);
  TANDEM_TRY(store_->SetPublishedVersion(id, outcome->published->version, outcome->published->note));
  return store_->Get(id);
}

void JobService::StartRollBack(const JobRecord& record, Done<JobRecord> done) {
  if (const Status free = CheckNotBusy(record.id); !free) return done(std::unexpected(free.error()));
  busy_.insert(record.id);
  publishing_->Do([this, record, done = std::move(done)]() mutable {
    const Status status =
        publisher_.RollBack(record.model, record.published_version, JobFolder::Of(options_.state, record.id).result());
    Post([this, id = record.id, status, done = std::move(done)]() mutable {
      busy_.erase(id);
      const auto end = [&]() -> Result<JobRecord> {
        TANDEM_TRY(status);
        metrics_.Count(PublishResult::kRolledBack);
        TANDEM_TRY(store_->SetPublishedVersion(id, ""));
        return store_->Get(id);
      };
      done(end());
    });
  });
}

void JobService::PublishDue(const JobRecord& record, const TrainingJob& job) {
  if (!record.publish_due || !models_loaded_ || draining_.load()) return;
  PublishOrder order{.record = record, .job = job, .only_if_better = job.publish == PublishRule::kIfBetter};
  StartPublishing(std::move(order), [id = record.id](const Result<JobRecord>& published) {
    if (!published) {
      LogError("a job could not be published", {{"job", std::to_string(id)}, {"reason", published.error().message}});
    } else if (!published->published_version.empty()) {
      LogInfo("job published", {{"job", std::to_string(id)}, {"version", published->published_version}});
    }
  });
}

void JobService::ModelsLoaded() {
  Post([this] {
    models_loaded_ = true;
    std::vector<JobRecord> due;
    JobQuery query{.publish_due = true, .limit = JobQuery::kMaxPage};
    do {
      auto page = store_->List(query);
      if (!page) return LogError("unpublished jobs cannot be read", {{"reason", page.error().message}});
      std::ranges::move(page->jobs, std::back_inserter(due));
      query.before = page->next;
    } while (query.before != 0);
    for (const JobRecord& record : due | std::views::reverse) {
      if (const auto order = OrderFor(record)) PublishDue(record, order->job);
    }
  });
}

void JobService::CountStates() {
  const std::uint64_t changes = store_->state_changes();
  if (changes == counted_changes_) return;
  auto states = store_->CountByState();
  if (!states) return;
  counted_changes_ = changes;
  metrics_.SetStates(*std::move(states));
}

}  // namespace tandem::jobs
