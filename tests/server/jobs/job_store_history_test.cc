#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "server/jobs/job_store.h"
#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Points = std::vector<SeriesPoint>;

constexpr StoreLimits kSmall{.events_per_job = 5, .points_per_series = 8, .series_per_job = 2};

class HistoryTest : public StoreTest {
 protected:
  HistoryTest() : StoreTest(kSmall), job_(Add()) {}

  const JobId job_;
};

TEST_F(HistoryTest, EventsFollowOneSequenceOverAllJobs) {
  const JobId other = Add();
  const std::int64_t first = store_->AddEvent(job_, "log", R"({"line":"ü"})").value();
  const std::int64_t second = store_->AddEvent(other, "log", "{}").value();
  EXPECT_GT(second, first);
  EXPECT_THAT(*store_->EventsAfter(job_, first - 1, 10),
              ElementsAre(JobEvent{first, job_, 3'600'000, "log", R"({"line":"ü"})"}));
  EXPECT_EQ(store_->EventsAfter(std::nullopt, first - 1, 10)->size(), 2u);
  EXPECT_EQ(store_->EventsAfter(std::nullopt, 0, 3)->size(), 3u);
  EXPECT_THAT(*store_->EventsAfter(std::nullopt, second, 10), IsEmpty());
  Reopen();
  EXPECT_GT(store_->AddEvent(job_, "log", "{}").value(), second);
}

TEST_F(HistoryTest, TheOldestEventsOfAJobGoBeyondTheLimit) {
  const JobId other = Add();
  std::int64_t last = 0;
  for (int i = 0; i < 20; ++i) last = store_->AddEvent(job_, "log", std::to_string(i)).value();
  const auto events = store_->EventsAfter(job_, 0, 100).value();
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events.front().body, "15");
  EXPECT_EQ(events.back().sequence, last);
  EXPECT_EQ(store_->EventsAfter(other, 0, 100)->size(), 1u) << "those of other jobs stay";
}

TEST_F(HistoryTest, EventsAreBoundedAndChecked) {
  EXPECT_EQ(store_->AddEvent(job_, "", "{}").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_->AddEvent(job_, std::string(65, 'k'), "{}").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_->AddEvent(job_, "log", "{").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store_->AddEvent(job_, "log", "\"" + std::string(70'000, 'x') + "\"").error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(store_->AddEvent(99, "log", "{}").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->EventsAfter(99, 0, 10).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(store_->EventsAfter(job_, 0, 0));
}

TEST_F(HistoryTest, SeriesAreKeptByName) {
  ASSERT_TRUE(store_->AddSeriesPoints(job_, "loss", Points{{1, 0.5}, {2, 0.25}}));
  ASSERT_TRUE(store_->AddSeriesPoints(job_, "loss", Points{{4, 0.125}}));
  ASSERT_TRUE(store_->AddSeriesPoints(job_, "lr", Points{{1, 1e-3}}));
  Reopen();
  const auto series = store_->Series(job_).value();
  ASSERT_EQ(series.size(), 2u);
  EXPECT_EQ(series.at("loss"), (Points{{1, 0.5}, {2, 0.25}, {4, 0.125}}));
  EXPECT_EQ(series.at("lr"), (Points{{1, 1e-3}}));
  EXPECT_THAT(store_->AddSeriesPoints(job_, "third", Points{{1, 1}}).error().message, HasSubstr("has 2 series"));
  EXPECT_EQ(store_->AddSeriesPoints(99, "loss", Points{{1, 1}}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(store_->AddSeriesPoints(job_, "", Points{{1, 1}}));
}

TEST_F(HistoryTest, AJobThatGoesBackToACheckpointWritesItsSeriesAnew) {
  ASSERT_TRUE(store_->AddSeriesPoints(job_, "loss", Points{{1, 1}, {2, 2}, {3, 3}, {4, 4}}));
  ASSERT_TRUE(store_->AddSeriesPoints(job_, "loss", Points{{2, 20}, {3, 30}}));
  EXPECT_EQ(store_->Series(job_)->at("loss"), (Points{{1, 1}, {2, 20}, {3, 30}}));
}

TEST_F(HistoryTest, WhatIsNotFiniteIsLeftOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(store_->AddSeriesPoints(job_, "loss", Points{{1, 1}, {2, std::nan("")}, {3, infinity}, {4, -infinity}}));
  EXPECT_EQ(store_->Series(job_)->at("loss"), (Points{{1, 1}}));
}

TEST(Series, AreThinnedEvenlyAndKeepTheirEnds) {
  const TestFolder folder;
  const FakeClock clock;
  const auto store = JobStore::Open(folder.path(), clock, kSmall).value();
  rc::check([&] {
    const std::size_t limit = kSmall.points_per_series;
    const JobId job = store->Submit({.spec = "{}"}).value().job.id;
    const auto stride = *rc::gen::inRange<std::int64_t>(1, 50);
    const auto count = *rc::gen::inRange<std::int64_t>(1, 200);
    const auto batch = *rc::gen::inRange<std::int64_t>(1, 20);
    for (std::int64_t at = 0; at < count;) {
      Points points;
      for (std::int64_t i = 0; i < batch && at < count; ++i, ++at) points.push_back({at * stride, double(at)});
      RC_ASSERT(store->AddSeriesPoints(job, "loss", points).has_value());
      const Points kept = store->Series(job)->at("loss");
      RC_ASSERT(kept.size() <= limit);
      RC_ASSERT(kept.front() == (SeriesPoint{0, 0}));
      RC_ASSERT(kept.back() == points.back());
    }
    const Points kept = store->Series(job)->at("loss");
    if (count <= static_cast<std::int64_t>(limit)) RC_ASSERT(std::ssize(kept) == count);
    std::int64_t widest = 0;
    for (std::size_t i = 1; i < kept.size(); ++i) {
      RC_ASSERT(kept[i].step > kept[i - 1].step);
      RC_ASSERT(kept[i].step == static_cast<std::int64_t>(kept[i].value) * stride);
      widest = std::max(widest, kept[i].step - kept[i - 1].step);
    }
    // No stretch of the curve is lost: a gap is at most a few times what an even spread over the limit would have.
    RC_ASSERT(widest <= stride + 4 * (count * stride) / static_cast<std::int64_t>(limit / 2));
  });
}

TEST_F(HistoryTest, CheckpointsAreListedNewestFirstAndCanBeBad) {
  ASSERT_TRUE(store_->AddCheckpoint({.job = job_, .step = 10, .path = "c/10", .bytes = 5, .checksum = "aa"}));
  ASSERT_TRUE(store_->AddCheckpoint({.job = job_, .step = 20, .path = "c/20", .bytes = 6, .checksum = "bb"}));
  ASSERT_TRUE(store_->AddCheckpoint({.job = job_, .step = 20, .path = "c/20b", .bytes = 7, .checksum = "cc"}));
  ASSERT_TRUE(store_->MarkCheckpointBad(job_, 20));
  Reopen();
  const CheckpointRecord newer{job_, 20, "c/20b", 7, "cc", 3'600'000, false};
  const CheckpointRecord older{job_, 10, "c/10", 5, "aa", 3'600'000, true};
  EXPECT_THAT(*store_->Checkpoints(job_), ElementsAre(newer, older));
  ASSERT_TRUE(store_->RemoveCheckpoint(job_, 20));
  EXPECT_THAT(*store_->Checkpoints(job_), ElementsAre(older));
  EXPECT_EQ(store_->RemoveCheckpoint(job_, 20).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->MarkCheckpointBad(job_, 20).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(store_->AddCheckpoint({.job = 99}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tandem::jobs
