#include "server/jobs/job_memory.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/memory/memory_account.h"

namespace tandem::jobs {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

JobRecord Queued(JobId id, int priority = 0) {
  JobRecord record{.id = id, .priority = priority};
  record.spec = R"({"model":"m","data":{"kind":"synthetic","samples":10},"steps":9,"loss":"mse"})";
  return record;
}

class JobMemoryTest : public ::testing::Test {
 protected:
  JobMemoryTest() {
    account_ = MemoryAccount::Create(BudgetOf({.bytes = 1000 * kMiB}, {.device = 2000 * kMiB}), 1).value();
    options_.memory = account_.get();
    options_.need = [this](const TrainingJob&, const std::filesystem::path&) -> Result<JobNeed> { return need_; };
  }
  // All that may begin.
  std::vector<JobId> Admitted() {
    std::vector<JobId> ids;
    while (const auto id = memory_.Next()) ids.push_back(*id);
    return ids;
  }

  JobNeed need_{.persistent = 300 * kMiB, .ephemeral = 100 * kMiB};
  std::shared_ptr<MemoryAccount> account_;
  JobOptions options_;
  JobMemory memory_{options_};
};

TEST_F(JobMemoryTest, AsManyBeginAsThereIsRoomFor) {
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2), Queued(3)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{1, 2}));
  EXPECT_THAT(memory_.WhyWaiting(3), HasSubstr("needs P 300.0 MiB + E 100.0 MiB; free 200.0 MiB; would fit when job"));
  EXPECT_EQ(memory_.WhyWaiting(1), "");
  EXPECT_EQ(memory_.WhyWaiting(77), "");
  memory_.Leave(1);
  EXPECT_TRUE(memory_.TakeNews());
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(3)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{3}));
}

TEST_F(JobMemoryTest, TheMoreUrgentIsFirst) {
  need_ = {.persistent = 900 * kMiB};
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2, 5)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{2}));
}

TEST_F(JobMemoryTest, WhoIsNotOfferedAgainWaitsNoMore) {
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2), Queued(3), Queued(4)}));
  EXPECT_EQ(Admitted().size(), 2U);
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(4)}));
  EXPECT_EQ(memory_.WhyWaiting(3), "");
  EXPECT_EQ(account_->Map().waiting.size(), 1U);
  EXPECT_EQ(account_->Map().sessions.size(), 2U) << "those that have begun are not offered";
}

TEST_F(JobMemoryTest, ManyAreLookedAtAFewAtATime) {
  int read = 0;
  options_.need = [&](const TrainingJob&, const std::filesystem::path&) -> Result<JobNeed> {
    ++read;
    return JobNeed{.persistent = 2000 * kMiB};
  };
  std::vector<JobRecord> due;
  for (JobId id = 1; id <= 2 * JobMemory::kMostRead + 1; ++id) due.push_back(Queued(id));
  EXPECT_FALSE(memory_.Offer(due));
  EXPECT_EQ(read, JobMemory::kMostRead);
  EXPECT_FALSE(memory_.Offer(due));
  EXPECT_TRUE(memory_.Offer(due));
  EXPECT_TRUE(memory_.Offer(due));
  EXPECT_EQ(read, 2 * JobMemory::kMostRead + 1) << "each once";
}

TEST_F(JobMemoryTest, WhatAJobTurnsOutToNeedMakesRoomOrTakesIt) {
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2), Queued(3)}));
  EXPECT_EQ(Admitted().size(), 2U);
  memory_.Watch(1, 150 * kMiB, 160 * kMiB, true);
  EXPECT_TRUE(memory_.TakeNews());
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(3)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{3}));
  memory_.Watch(2, 800 * kMiB, 800 * kMiB, false);
  EXPECT_GT(account_->Map().overhang, 0U);
  const MemoryMap map = account_->Map();
  EXPECT_EQ(map.sessions.at(0).name, "job 1");
  EXPECT_EQ(map.sessions.at(0).measured, 150 * kMiB);
}

TEST_F(JobMemoryTest, WhatATrainerExpectsTakesThePlaceOfTheGuess) {
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2), Queued(3)}));
  EXPECT_EQ(Admitted().size(), 2U);
  EXPECT_TRUE(memory_.Expect(1, {.persistent = 50 * kMiB, .ephemeral = 60 * kMiB}));
  EXPECT_TRUE(memory_.Expect(77, {.persistent = 1}));
  EXPECT_TRUE(memory_.TakeNews());
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(3)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{3}));
}

TEST_F(JobMemoryTest, AJobIsTakenIntoALaneOfAnotherWhereThereIsNoRoomForMore) {
  need_ = {.persistent = 100 * kMiB, .ephemeral = 700 * kMiB};
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{1, 2}));
  ASSERT_TRUE(memory_.LaneOf(2));
  EXPECT_EQ(memory_.LaneOf(2)->lane, memory_.LaneOf(1)->lane);
  EXPECT_EQ(memory_.LaneOf(2)->sessions, 2U);
  const auto grow = memory_.GrowthOf(2);
  EXPECT_EQ(grow(750 * kMiB), 750 * kMiB);
  EXPECT_EQ(grow(900 * kMiB), 750 * kMiB);
  EXPECT_FALSE(memory_.Expect(2, {.persistent = 100 * kMiB, .ephemeral = 880 * kMiB}));
  EXPECT_FALSE(memory_.LaneOf(77));
  EXPECT_FALSE(memory_.GrowthOf(77));
}

TEST_F(JobMemoryTest, AJobThatIsHeldToItsMemoryIsPromisedJustThat) {
  need_.bounded = true;
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1)}));
  EXPECT_EQ(Admitted().size(), 1U);
  const std::uint64_t before = account_->Map().use.total();
  EXPECT_TRUE(memory_.Expect(1, {.persistent = 50 * kMiB, .ephemeral = 60 * kMiB}));
  EXPECT_EQ(account_->Map().use.total(), before);
}

TEST_F(JobMemoryTest, AJobThatIsToFitHasWhatIsFreeUntilItsTrainerTellsWhatItTakes) {
  const auto fitting = [](JobId id) {
    JobRecord record = Queued(id);
    record.spec = R"({"model":"m","data":{"kind":"synthetic","samples":10},"steps":9,"loss":"mse","memory":"fit"})";
    return record;
  };
  need_ = {.persistent = 100 * kMiB, .ephemeral = 1600 * kMiB};
  EXPECT_TRUE(memory_.Offer(std::vector{fitting(1), fitting(2)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{1})) << "there is less than the guess, but it is to fit";
  EXPECT_EQ(memory_.BoundOf(1), 1000 * kMiB);
  EXPECT_EQ(memory_.BoundOf(77), std::nullopt);

  EXPECT_TRUE(memory_.Expect(1, {.persistent = 90 * kMiB, .ephemeral = 510 * kMiB}));
  EXPECT_TRUE(memory_.TakeNews());
  EXPECT_TRUE(memory_.Offer(std::vector{fitting(2)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{2})) << "what is free now, and not what was when it was first offered";
  EXPECT_EQ(memory_.BoundOf(2), 400 * kMiB);

  EXPECT_TRUE(memory_.Offer(std::vector{fitting(3)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{}));
  EXPECT_THAT(memory_.WhyWaiting(3), HasSubstr("needs P 100.0 MiB + E 100.0 MiB")) << "a sixteenth is the least";
}

TEST_F(JobMemoryTest, AJobWithABoundOfItsOwnToFitIntoIsPromisedThat) {
  JobRecord record = Queued(1);
  record.spec =
      R"({"model":"m","data":{"kind":"synthetic","samples":10},"steps":9,"loss":"mse","memory":{"fit":"300MiB"}})";
  options_.need = [](const TrainingJob& job, const std::filesystem::path&) -> Result<JobNeed> {
    return GuessNeed(job, {});
  };
  EXPECT_TRUE(memory_.Offer(std::vector{record}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{1}));
  EXPECT_EQ(account_->Map().use.total(), 300 * kMiB);
  EXPECT_EQ(memory_.BoundOf(1), std::nullopt) << "its trainer knows";
}

TEST_F(JobMemoryTest, AJobThatHadATrainerBeforeNeedsWhatThatNoted) {
  JobRecord again = Queued(1);
  again.memory = R"({"estimate":null,"measured":{"persistent":1048576,"ephemeral":2097152},"error":null})";
  EXPECT_TRUE(memory_.Offer(std::vector{again}));
  EXPECT_EQ(Admitted().size(), 1U);
  EXPECT_EQ(account_->Map().use.total(), 3 * kMiB);
}

TEST_F(JobMemoryTest, APausedJobIsNotWaitedFor) {
  need_ = {.persistent = 900 * kMiB};
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1), Queued(2)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{1}));
  EXPECT_THAT(memory_.WhyWaiting(2), HasSubstr("would fit when job 1 ends"));
  memory_.SetPaused(1, true);
  EXPECT_THAT(memory_.WhyWaiting(2), HasSubstr("when paused jobs end"));
  memory_.SetPaused(1, false);
  EXPECT_THAT(memory_.WhyWaiting(2), HasSubstr("would fit when job 1 ends"));
}

TEST_F(JobMemoryTest, WhatCanNeverFitIsRefused) {
  need_ = {.persistent = 700 * kMiB, .ephemeral = 301 * kMiB};
  const Status refused = memory_.CheckEverFits({}, "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  need_.ephemeral -= kMiB;
  EXPECT_TRUE(memory_.CheckEverFits({}, ""));
}

TEST_F(JobMemoryTest, AModelThatCannotBeReadIsLeftToTheTrainer) {
  options_.need = [](const TrainingJob&, const std::filesystem::path&) -> Result<JobNeed> {
    return Fail(ErrorCode::kNotFound, "gone");
  };
  EXPECT_TRUE(memory_.Offer(std::vector{Queued(1)}));
  EXPECT_EQ(Admitted(), (std::vector<JobId>{1}));
}

TEST_F(JobMemoryTest, WhatItHasGoesWithIt) {
  {
    JobMemory other(options_);
    EXPECT_TRUE(other.Offer(std::vector{Queued(1), Queued(2), Queued(3)}));
    EXPECT_TRUE(other.Next());
  }
  EXPECT_EQ(account_->Map().use.total(), 0U);
  EXPECT_TRUE(account_->Map().waiting.empty());
}

TEST(JobMemory, WithoutAnAccountAllMayBeginInOrder) {
  const JobOptions options;
  JobMemory memory(options);
  EXPECT_TRUE(memory.Offer(std::vector{Queued(5), Queued(2)}));
  EXPECT_EQ(memory.Next(), 5);
  EXPECT_EQ(memory.Next(), 2);
  EXPECT_FALSE(memory.Next());
  memory.Leave(5);
  memory.SetPaused(2, true);
  memory.Watch(2, 1, 1, true);
  EXPECT_EQ(memory.WhyWaiting(2), "");
  EXPECT_EQ(memory.news_fd(), -1);
  EXPECT_TRUE(memory.CheckEverFits({}, ""));
}

}  // namespace
}  // namespace tandem::jobs
