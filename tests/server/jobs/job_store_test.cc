#include "server/jobs/job_store.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobStoreTest : public StoreTest {
 protected:
  std::vector<JobId> Ids(const JobQuery& query) {
    std::vector<JobId> ids;
    const JobPage page = store_->List(query).value();
    for (const JobRecord& job : page.jobs) ids.push_back(job.id);
    return ids;
  }
};

TEST_F(JobStoreTest, AJobIsThereAfterARestartAsItWasSubmitted) {
  clock_.Advance(5ms);
  const auto submitted = store_->Submit({.name = "größe",
                                         .owner = "ann",
                                         .idempotency_key = "k",
                                         .spec = R"({"a":1})",
                                         .model = "digits",
                                         .model_version = "3",
                                         .priority = -2});
  ASSERT_TRUE(submitted) << submitted.error().message;
  EXPECT_TRUE(submitted->is_new);
  Reopen();
  const auto job = store_->Get(submitted->job.id);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->state, JobState::kQueued);
  EXPECT_EQ(job->name, "größe");
  EXPECT_EQ(job->owner, "ann");
  EXPECT_EQ(job->idempotency_key, "k");
  EXPECT_EQ(job->spec, R"({"a":1})");
  EXPECT_EQ(job->model, "digits");
  EXPECT_EQ(job->model_version, "3");
  EXPECT_EQ(job->priority, -2);
  EXPECT_EQ(job->created_at, 3'600'005);
  EXPECT_EQ(job->started_at, std::nullopt);
  EXPECT_EQ(job->ended_at, std::nullopt);
  EXPECT_EQ(job->progress, JobProgress{});
  EXPECT_EQ(job->attempts, 0);
}

TEST_F(JobStoreTest, TheSameKeyAndSpecIsTheSameJob) {
  const NewJob job{.name = "a", .owner = "ann", .idempotency_key = "k", .spec = "{}"};
  const auto first = store_->Submit(job);
  const auto again = store_->Submit(job);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(again->job.id, first->job.id);
  NewJob other = job;
  other.spec = "{\"a\":1}";
  const auto conflict = store_->Submit(other);
  ASSERT_FALSE(conflict);
  EXPECT_EQ(conflict.error().code, ErrorCode::kConflict);
  EXPECT_THAT(conflict.error().message, HasSubstr("'k' came with another job, which is job 1"));
  other.owner = "bob";
  EXPECT_TRUE(store_->Submit(other)->is_new) << "the key of another owner";
  NewJob keyless = job;
  keyless.idempotency_key.clear();
  EXPECT_NE(store_->Submit(keyless)->job.id, store_->Submit(keyless)->job.id);
  NewJob long_key = job;
  long_key.idempotency_key = std::string(256, 'k');
  EXPECT_EQ(store_->Submit(long_key).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(JobStoreTest, ListsNewestFirstInPagesThatNewJobsDoNotShift) {
  for (int i = 0; i < 5; ++i) Add();
  const JobPage first = store_->List({.limit = 2}).value();
  ASSERT_EQ(first.jobs.size(), 2u);
  EXPECT_EQ(first.jobs[0].id, 5);
  EXPECT_EQ(first.next, 4);
  Add();
  const JobPage second = store_->List({.before = first.next, .limit = 2}).value();
  EXPECT_EQ(second.jobs[0].id, 3);
  const JobPage last = store_->List({.before = second.next, .limit = 2}).value();
  ASSERT_EQ(last.jobs.size(), 1u);
  EXPECT_EQ(last.next, 0);
  EXPECT_EQ(store_->List({.limit = 6}).value().next, 0) << "a full page may be the last";
  EXPECT_FALSE(store_->List({.limit = 0}));
  EXPECT_FALSE(store_->List({.limit = 1001}));
}

TEST_F(JobStoreTest, PublishingIsDueUntilItCameToAnEnd) {
  const auto due = [&] { return Ids({.publish_due = true}); };
  const JobId published = AddRunning();
  const JobId given_up = AddRunning();
  const JobId other = AddRunning();
  for (const JobId id : {published, given_up}) {
    EXPECT_TRUE(store_->Transition(id, JobAction::kSucceed, {.publish_due = true})->publish_due);
  }
  EXPECT_FALSE(store_->Transition(other, JobAction::kSucceed)->publish_due);
  Reopen();
  EXPECT_THAT(due(), ElementsAre(given_up, published));
  ASSERT_TRUE(store_->SetPublishedVersion(published, "4", "its output has 7 classes"));
  EXPECT_THAT(due(), ElementsAre(given_up));
  EXPECT_THAT(store_->EventsAfter(published, 0, 100)->back().body,
              AllOf(HasSubstr("\"version\":\"4\""), HasSubstr("\"note\":\"its output has 7 classes\"")));
  ASSERT_TRUE(store_->GiveUpPublishing(given_up, "not_published", "it is no better"));
  EXPECT_THAT(due(), IsEmpty());
  const JobEvent last = store_->EventsAfter(given_up, 0, 100)->back();
  EXPECT_EQ(last.kind, "not_published");
  EXPECT_EQ(last.body, R"({"why":"it is no better"})");
  EXPECT_EQ(store_->GiveUpPublishing(99, "not_published", "").error().code, ErrorCode::kNotFound);
}

TEST_F(JobStoreTest, TellsWhenTheNumberOfJobsInAStateMayHaveChanged) {
  std::uint64_t seen = store_->state_changes();
  const auto changed = [&] {
    const std::uint64_t before = std::exchange(seen, store_->state_changes());
    return seen != before;
  };
  const JobId id = Add();
  EXPECT_TRUE(changed());
  ASSERT_TRUE(store_->Transition(id, JobAction::kAdmit));
  EXPECT_TRUE(changed());
  ASSERT_TRUE(store_->UpdateProgress(id, {.step = 1}));
  EXPECT_FALSE(changed());
  EXPECT_FALSE(store_->Transition(id, JobAction::kResume));
  EXPECT_FALSE(changed());
  ASSERT_TRUE(store_->Transition(id, JobAction::kCancel));
  EXPECT_TRUE(changed());
  ASSERT_TRUE(store_->Delete(id));
  EXPECT_TRUE(changed());
}

TEST_F(JobStoreTest, FiltersByStateAndOwner) {
  const JobId queued = Add();
  const JobId running = AddRunning();
  const JobId cancelled = Add();
  ASSERT_TRUE(store_->Transition(cancelled, JobAction::kCancel));
  const JobId of_ann = store_->Submit({.name = "b", .owner = "ann", .spec = "{}"})->job.id;
  EXPECT_THAT(Ids({.states = {JobState::kRunning, JobState::kCancelled}}), ElementsAre(cancelled, running));
  EXPECT_THAT(Ids({.states = {JobState::kQueued}}), ElementsAre(of_ann, queued));
  EXPECT_THAT(Ids({.states = {JobState::kQueued}, .owner = "ann"}), ElementsAre(of_ann));
  EXPECT_THAT(Ids({.states = {JobState::kPaused}}), IsEmpty());
  const auto counts = store_->CountByState().value();
  EXPECT_EQ(counts.at(JobState::kQueued), 2);
  EXPECT_EQ(counts.at(JobState::kRunning), 1);
  EXPECT_EQ(counts.at(JobState::kPaused), 0);
}

TEST_F(JobStoreTest, AJobKeepsTheThreadsThatItBeganWith) {
  const JobId id = Add();
  EXPECT_EQ(store_->Get(id)->fixed_threads, std::nullopt);
  EXPECT_EQ(store_->Transition(id, JobAction::kAdmit, {.fixed_threads = 4})->fixed_threads, 4);
  ASSERT_TRUE(store_->Transition(id, JobAction::kRequeue));
  Reopen();
  EXPECT_EQ(store_->Transition(id, JobAction::kAdmit, {.fixed_threads = 2})->fixed_threads, 4);
  EXPECT_FALSE(store_->Transition(Add(), JobAction::kAdmit, {.fixed_threads = 0})) << "nobody could train with none";
}

TEST_F(JobStoreTest, ALifeWithARetryIsToldInFull) {
  const JobId id = Add();
  ASSERT_TRUE(store_->Transition(id, JobAction::kAdmit, {.model_version = "4"}));
  clock_.Advance(1s);
  ASSERT_TRUE(store_->Transition(id, JobAction::kStart));
  const auto retried =
      store_->Transition(id, JobAction::kRetry, {.reason = "the trainer was killed", .next_attempt_at = 99});
  ASSERT_TRUE(retried) << retried.error().message;
  EXPECT_EQ(retried->state, JobState::kQueued);
  EXPECT_EQ(retried->next_attempt_at, 99);
  EXPECT_EQ(retried->reason, "the trainer was killed");
  ASSERT_TRUE(store_->Transition(id, JobAction::kAdmit));
  clock_.Advance(1s);
  ASSERT_TRUE(store_->Transition(id, JobAction::kStart));
  clock_.Advance(1s);
  const JobProgress done{
      .step = 9, .total_steps = 9, .epoch = 3, .loss = 0.5, .metric_name = "accuracy", .metric = 0.9};
  const auto ended = store_->Transition(id, JobAction::kSucceed, {.progress = done});
  ASSERT_TRUE(ended) << ended.error().message;
  Reopen();
  const JobRecord job = store_->Get(id).value();
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.model_version, "4");
  EXPECT_EQ(job.started_at, 3'601'000) << "the first time";
  EXPECT_EQ(job.ended_at, 3'603'000);
  EXPECT_EQ(job.attempts, 2);
  EXPECT_EQ(job.retries, 1);
  EXPECT_EQ(job.next_attempt_at, std::nullopt);
  EXPECT_EQ(job.reason, "");
  EXPECT_EQ(job.progress, done);
  std::vector<std::string> states;
  const std::vector<JobEvent> events = store_->EventsAfter(id, 0, 100).value();
  for (const JobEvent& event : events) states.push_back(event.body);
  EXPECT_THAT(
      states,
      ElementsAre(R"({"to":"queued","action":"submit"})", R"({"from":"queued","to":"admitted","action":"admit"})",
                  R"({"from":"admitted","to":"running","action":"start"})",
                  R"({"from":"running","to":"queued","action":"retry","reason":"the trainer was killed"})",
                  R"({"from":"queued","to":"admitted","action":"admit"})",
                  R"({"from":"admitted","to":"running","action":"start"})",
                  R"({"from":"running","to":"succeeded","action":"succeed"})"));
}

TEST_F(JobStoreTest, WhatTheStateForbidsChangesNothing) {
  const JobId id = Add();
  const auto refused = store_->Transition(id, JobAction::kSucceed, {.reason = "x", .progress = JobProgress{.step = 5}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("job 1: the job is queued, which does not allow 'succeed'"));
  EXPECT_EQ(store_->Get(id)->progress.step, 0);
  EXPECT_EQ(store_->EventsAfter(id, 0, 10)->size(), 1u);
  EXPECT_EQ(store_->Transition(7, JobAction::kCancel).error().code, ErrorCode::kNotFound);
}

TEST_F(JobStoreTest, ProgressEndsWithTheJob) {
  const JobId id = AddRunning();
  const JobProgress progress{.step = 5,
                             .total_steps = 100,
                             .epoch = 1,
                             .loss = 1.25,
                             .metric_name = "accuracy",
                             .metric = 0.5,
                             .best_metric = 0.75};
  ASSERT_TRUE(store_->UpdateProgress(id, progress));
  EXPECT_EQ(store_->Get(id)->progress, progress);
  ASSERT_TRUE(store_->UpdateProgress(id, {.loss = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_EQ(store_->Get(id)->progress.loss, std::nullopt);
  ASSERT_TRUE(store_->Transition(id, JobAction::kFail, {.reason = "NaN"}));
  EXPECT_EQ(store_->UpdateProgress(id, progress).error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->UpdateProgress(99, progress).error().code, ErrorCode::kNotFound);
}

TEST_F(JobStoreTest, AnEndedJobCanBePublished) {
  const JobId id = AddRunning();
  ASSERT_TRUE(store_->Transition(id, JobAction::kSucceed));
  ASSERT_TRUE(store_->SetPublishedVersion(id, "5"));
  EXPECT_EQ(store_->Get(id)->published_version, "5");
  EXPECT_EQ(store_->EventsAfter(id, 0, 10)->back().kind, "published");
  ASSERT_TRUE(store_->SetPublishedVersion(id, ""));
  EXPECT_EQ(store_->Get(id)->published_version, "");
  EXPECT_EQ(store_->EventsAfter(id, 0, 10)->back().kind, "rolled_back");
  EXPECT_EQ(store_->EventsAfter(id, 0, 10)->back().body, R"({"version":"5"})");
  EXPECT_EQ(store_->SetPublishedVersion(9, "5").error().code, ErrorCode::kNotFound);
}

TEST_F(JobStoreTest, OnlyEndedJobsAreDeletedAndTheirNumbersAreNotUsedAgain) {
  const JobId id = AddRunning();
  const auto refused = store_->Delete(id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  const SeriesPoint point{.step = 1, .value = 2};
  ASSERT_TRUE(store_->AddSeriesPoints(id, "loss", std::span(&point, 1)));
  ASSERT_TRUE(store_->AddCheckpoint({.job = id, .step = 1, .path = "a", .bytes = 1, .checksum = "c"}));
  ASSERT_TRUE(store_->Transition(id, JobAction::kCancel));
  ASSERT_TRUE(store_->Delete(id));
  EXPECT_EQ(store_->Get(id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->Series(id).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->Checkpoints(id).error().code, ErrorCode::kNotFound);
  EXPECT_THAT(*store_->EventsAfter(std::nullopt, 0, 10), IsEmpty());
  EXPECT_EQ(store_->Delete(id).error().code, ErrorCode::kNotFound);
  Reopen();
  EXPECT_EQ(Add(), id + 1);
}

class FullJobStoreTest : public StoreTest {
 protected:
  FullJobStoreTest() : StoreTest({.jobs = 2}) {}
};

TEST_F(FullJobStoreTest, BeyondTheLimitJobsAreRefusedUntilOneIsDeleted) {
  const JobId id = Add();
  Add();
  const auto refused = store_->Submit({.name = "c", .spec = "{}"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(store_->Transition(id, JobAction::kCancel));
  ASSERT_TRUE(store_->Delete(id));
  EXPECT_TRUE(store_->Submit({.name = "c", .spec = "{}"}));
}

TEST_F(JobStoreTest, OfManyThreadsOneWins) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10;
  std::atomic<int> submitted = 0;
  std::atomic<int> admitted = 0;
  std::atomic<int> refused = 0;
  const auto work = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const auto job = store_->Submit({.name = "a", .idempotency_key = std::to_string(round), .spec = "{}"});
      ASSERT_TRUE(job) << job.error().message;
      submitted += job->is_new ? 1 : 0;
      const auto next = store_->Transition(job->job.id, JobAction::kAdmit);
      admitted += next ? 1 : 0;
      refused += !next && next.error().code == ErrorCode::kConflict ? 1 : 0;
      EXPECT_TRUE(store_->UpdateProgress(job->job.id, {.step = round}));
      EXPECT_TRUE(store_->AddEvent(job->job.id, "log", "{}"));
      EXPECT_TRUE(store_->List({}));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  }
  EXPECT_EQ(submitted, kRounds);
  EXPECT_EQ(admitted, kRounds);
  EXPECT_EQ(refused, kRounds * (kThreads - 1));
}

}  // namespace
}  // namespace tandem::jobs
