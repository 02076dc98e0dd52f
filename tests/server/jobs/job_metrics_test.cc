#include "server/jobs/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class JobMetricsTest : public testing::Test {
 protected:
  [[nodiscard]] std::vector<JobId> Shown() const {
    std::vector<JobId> ids;
    for (const JobTotals& job : metrics_.Read().jobs) ids.push_back(job.job);
    return ids;
  }
  [[nodiscard]] JobTotals Of(JobId id) const {
    for (const JobTotals& job : metrics_.Read().jobs) {
      if (job.job == id) return job;
    }
    return {};
  }

  FakeClock clock_;
  JobMetrics metrics_{clock_};
};

TEST_F(JobMetricsTest, AddsUpOverTheTrainersOfAJob) {
  metrics_.Started(7);
  metrics_.Iterated(7, 10, 2.5);
  metrics_.Checkpointed(7);
  metrics_.Stopped(7);
  metrics_.Retried(7);
  metrics_.Started(7);
  metrics_.Iterated(7, 4, 1.5);
  metrics_.Held(7, HoldReason::kPaused, 2s);
  metrics_.Held(7, HoldReason::kPaused, 500ms);
  const JobTotals job = Of(7);
  EXPECT_EQ(job.iterations, 14);
  EXPECT_EQ(job.attempts, 2);
  EXPECT_EQ(job.retries, 1);
  EXPECT_EQ(job.checkpoints, 1);
  EXPECT_EQ(job.held.at(HoldReason::kPaused), 2500ms);
  EXPECT_EQ(job.loss, 1.5);
}

TEST_F(JobMetricsTest, NothingGoesDown) {
  metrics_.Started(1);
  metrics_.Iterated(1, 5, 1);
  metrics_.Iterated(1, -3, 1);
  metrics_.Held(1, HoldReason::kPaused, 1s);
  metrics_.Held(1, HoldReason::kPaused, -1s);
  EXPECT_EQ(Of(1).iterations, 5);
  EXPECT_EQ(Of(1).held.at(HoldReason::kPaused), 1s);
}

TEST_F(JobMetricsTest, AddsUpHowSoonAllTrainersObeyed) {
  const AcknowledgementTimes before{.counts = {1, 2}, .sum = 5us};
  const AcknowledgementTimes after{.counts = {1, 4, 7}, .sum = 30us};
  metrics_.Acknowledged(before, {});
  metrics_.Acknowledged(after, before);
  metrics_.Acknowledged(before, {});  // Another trainer.
  const AcknowledgementTimes all = metrics_.Read().acknowledgements;
  EXPECT_EQ(all.counts, (std::array<std::uint64_t, AcknowledgementTimes::kBuckets>{2, 6, 7}));
  EXPECT_EQ(all.sum, 35us);
}

TEST_F(JobMetricsTest, AJobGoesSomeTimeAfterItsEndOrWhenItIsDeleted) {
  for (const JobId id : {1, 2, 3}) metrics_.Started(id);
  metrics_.Ended(1);
  metrics_.Forget(2);
  EXPECT_THAT(Shown(), ElementsAre(1, 3));
  clock_.Advance(JobMetrics::kKeepEnded - 1s);
  EXPECT_THAT(Shown(), ElementsAre(1, 3));
  clock_.Advance(1s);
  EXPECT_THAT(Shown(), ElementsAre(3)) << "one that goes on stays";
  metrics_.Ended(9);
  EXPECT_THAT(Shown(), ElementsAre(3)) << "one without a trainer was never shown";
}

TEST_F(JobMetricsTest, ThereAreNeverMoreThanSoMany) {
  metrics_.Started(1);  // Runs all the while.
  for (JobId id = 2; id <= 500; ++id) {
    clock_.Advance(1ms);
    metrics_.Started(id);
    metrics_.Stopped(id);
  }
  const std::vector<JobId> shown = Shown();
  EXPECT_EQ(shown.size(), JobMetrics::kMostJobs);
  EXPECT_EQ(shown.front(), 1);
  EXPECT_EQ(shown[1], 500 - static_cast<JobId>(JobMetrics::kMostJobs) + 2) << "the oldest have gone";
  EXPECT_EQ(shown.back(), 500);
}

}  // namespace
}  // namespace tandem::jobs
