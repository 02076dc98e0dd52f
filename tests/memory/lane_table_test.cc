#include "memory/lane_table.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

SessionNeed Needs(std::uint64_t persistent, std::uint64_t ephemeral) {
  return {.persistent = persistent, .ephemeral = ephemeral};
}

class LaneTableTest : public ::testing::Test {
 protected:
  // Admits a session and says to which lane.
  LaneId Admit(std::uint64_t session, const SessionNeed& need) {
    const auto lane = table_.Admit(SessionId{session}, need, table_.FindLane(need));
    EXPECT_TRUE(lane) << lane.error().message;
    return lane.value_or(LaneId{});
  }
  [[nodiscard]] LaneFit FitOf(const SessionNeed& need) const { return table_.FindLane(need).fit; }
  [[nodiscard]] bool MayRun(std::uint64_t session) const { return table_.Find(SessionId{session})->fits; }
  void Leave(std::uint64_t session) { EXPECT_TRUE(table_.Leave(SessionId{session})); }

  LaneTable table_{100};
};

TEST_F(LaneTableTest, WhileThereIsRoomEverySessionHasALaneOfItsOwn) {
  const LaneId first = Admit(1, Needs(10, 30));
  const LaneId second = Admit(2, Needs(10, 20));
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.use(), (LaneUse{.persistent = 20, .lanes = 50}));
  EXPECT_EQ(table_.free(), 30U);
  EXPECT_EQ(FitOf(Needs(10, 20)), LaneFit::kNew) << "to the last byte";
  EXPECT_NE(FitOf(Needs(10, 21)), LaneFit::kNew);
}

TEST_F(LaneTableTest, WithoutRoomForAnotherLaneTheTightestIsShared) {
  Admit(1, Needs(0, 50));
  const LaneId tight = Admit(2, Needs(0, 30));
  Admit(3, Needs(0, 15));
  const LaneAnswer answer = table_.FindLane(Needs(5, 20));
  EXPECT_EQ(answer.fit, LaneFit::kReuse);
  EXPECT_EQ(answer.lane, tight);
  EXPECT_EQ(Admit(4, Needs(5, 20)), tight);
  EXPECT_EQ(table_.use(), (LaneUse{.persistent = 5, .lanes = 95}));
  EXPECT_TRUE(MayRun(4)) << "at once";
}

TEST_F(LaneTableTest, OfEquallyTightLanesTheOneWithFewerSessionsIsShared) {
  const LaneId first = Admit(1, Needs(0, 50));
  const LaneId second = Admit(2, Needs(0, 50));
  EXPECT_EQ(Admit(3, Needs(0, 40)), first) << "the older of two with one session each";
  EXPECT_EQ(Admit(4, Needs(0, 40)), second);
}

TEST_F(LaneTableTest, WhoSharesALaneNeedsRoomForItsPersistentBytesAllTheSame) {
  Admit(1, Needs(10, 80));
  EXPECT_EQ(FitOf(Needs(10, 80)), LaneFit::kReuse);
  EXPECT_EQ(FitOf(Needs(11, 80)), LaneFit::kQueue);
}

TEST_F(LaneTableTest, ALaneGrowsToTheLargerOfTheTwoAtItsBoundary) {
  const LaneId lane = Admit(1, Needs(10, 40));
  EXPECT_EQ(table_.FindLane(Needs(5, 60)), (LaneAnswer{.fit = LaneFit::kResize, .lane = lane, .length = 60}));
  Admit(2, Needs(5, 60));
  EXPECT_EQ(table_.lanes()[0].length, 40U);
  EXPECT_TRUE(MayRun(1));
  EXPECT_FALSE(MayRun(2)) << "not before the boundary";
  ASSERT_TRUE(table_.Boundary(lane));
  EXPECT_EQ(table_.lanes()[0].length, 60U);
  EXPECT_TRUE(MayRun(1));
  EXPECT_TRUE(MayRun(2));
  EXPECT_EQ(FitOf(Needs(25, 60)), LaneFit::kReuse);
  EXPECT_EQ(FitOf(Needs(26, 60)), LaneFit::kQueue);
}

TEST_F(LaneTableTest, WhatALaneGrowsToIsTakenBeforeTheBoundary) {
  Admit(1, Needs(0, 40));
  Admit(2, Needs(0, 70));
  EXPECT_EQ(table_.free(), 30U);
  EXPECT_EQ(FitOf(Needs(0, 30)), LaneFit::kNew);
  EXPECT_EQ(FitOf(Needs(31, 10)), LaneFit::kQueue);
}

TEST_F(LaneTableTest, TheLaneThatHasToGrowLeastGrows) {
  Admit(1, Needs(10, 20));
  const LaneId least = Admit(2, Needs(10, 35));
  Admit(3, Needs(0, 10));
  EXPECT_EQ(table_.FindLane(Needs(0, 50)), (LaneAnswer{.fit = LaneFit::kResize, .lane = least, .length = 50}));
  EXPECT_EQ(FitOf(Needs(0, 51)), LaneFit::kQueue) << "one byte more than is left";
}

TEST_F(LaneTableTest, WhoDoesNotFitIsToldInNumbers) {
  Admit(1, Needs(20, 50));
  const LaneAnswer answer = table_.FindLane(Needs(15, 80));
  EXPECT_EQ(answer.fit, LaneFit::kQueue);
  EXPECT_EQ(answer.needed, 45U) << "15, and 30 that the lane lacks";
  EXPECT_EQ(answer.free, 30U);
  EXPECT_EQ(answer.must_leave, 15U);
  EXPECT_TRUE(answer.possible);
  EXPECT_FALSE(table_.FindLane(Needs(15, 86)).possible);
  EXPECT_FALSE(table_.FindLane(Needs(101, 0)).possible);
}

TEST_F(LaneTableTest, SizesUpToTheLargestNumberDoNotWrapAround) {
  EXPECT_EQ(FitOf(Needs(kMost, kMost)), LaneFit::kQueue);
  EXPECT_EQ(table_.FindLane(Needs(kMost, 2)).needed, kMost);
  table_.SetBudget(kMost);
  EXPECT_EQ(FitOf(Needs(kMost, 1)), LaneFit::kQueue);
  EXPECT_EQ(FitOf(Needs(kMost, 0)), LaneFit::kNew);
  Admit(1, Needs(0, 0));
  EXPECT_FALSE(table_.Correct(SessionId{1}, Needs(kMost, 1)));
  EXPECT_FALSE(table_.Correct(SessionId{1}, Needs(kMost, kMost)));
  ASSERT_TRUE(table_.Correct(SessionId{1}, Needs(kMost - 5, 5)));
  EXPECT_EQ(FitOf(Needs(1, 0)), LaneFit::kQueue);
  table_.SetBudget(3);
  EXPECT_EQ(table_.overhang(), kMost - 3);
  EXPECT_EQ(table_.FindLane(Needs(kMost, kMost)).must_leave, kMost);
}

TEST_F(LaneTableTest, ALaneShrinksWhenItsLargestSessionLeaves) {
  const LaneId lane = Admit(1, Needs(10, 80));
  Admit(2, Needs(5, 30));
  Leave(1);
  EXPECT_EQ(table_.use(), (LaneUse{.persistent = 5, .lanes = 80})) << "the other may be in the middle of an iteration";
  ASSERT_TRUE(table_.Boundary(lane));
  EXPECT_EQ(table_.use(), (LaneUse{.persistent = 5, .lanes = 30}));
  EXPECT_EQ(FitOf(Needs(0, 65)), LaneFit::kNew);
}

TEST_F(LaneTableTest, WhoComesBeforeALaneHasShrunkKeepsItLong) {
  const LaneId lane = Admit(1, Needs(10, 80));
  Admit(2, Needs(5, 30));
  Leave(1);
  EXPECT_EQ(table_.FindLane(Needs(0, 50)), (LaneAnswer{.fit = LaneFit::kReuse, .lane = lane, .length = 50}));
  Admit(3, Needs(0, 50));
  ASSERT_TRUE(table_.Boundary(lane));
  EXPECT_EQ(table_.use().lanes, 50U);
}

TEST_F(LaneTableTest, WhenAllHaveLeftNothingIsInUse) {
  const LaneId lane = Admit(1, Needs(10, 40));
  Admit(2, Needs(5, 60));
  Leave(1);
  Leave(2);
  EXPECT_EQ(table_.use(), LaneUse{});
  EXPECT_TRUE(table_.lanes().empty());
  EXPECT_EQ(table_.Boundary(lane).error().code, ErrorCode::kNotFound);
  EXPECT_NE(Admit(3, Needs(10, 40)), lane) << "a name is not given twice";
}

TEST_F(LaneTableTest, ASessionThatGrowsWithinItsLaneNeedsNoMore) {
  Admit(1, Needs(10, 90));
  Admit(2, Needs(0, 20));
  EXPECT_EQ(table_.free(), 0U);
  ASSERT_TRUE(table_.Correct(SessionId{2}, Needs(0, 90)));
  EXPECT_TRUE(MayRun(2));
  Leave(1);
  table_.BoundaryOfAll();
  EXPECT_EQ(table_.use().lanes, 90U) << "it is the largest now";
}

TEST_F(LaneTableTest, ASessionThatOutgrewItsLaneRunsAfterTheBoundary) {
  const LaneId lane = Admit(1, Needs(10, 40));
  ASSERT_TRUE(table_.Correct(SessionId{1}, Needs(20, 80)));
  EXPECT_EQ(table_.use(), (LaneUse{.persistent = 20, .lanes = 80}));
  EXPECT_FALSE(MayRun(1));
  ASSERT_TRUE(table_.Boundary(lane));
  EXPECT_TRUE(MayRun(1));
}

TEST_F(LaneTableTest, GrowthThatDoesNotFitIsRefusedAndNothingChanges) {
  Admit(1, Needs(10, 40));
  Admit(2, Needs(10, 20));
  const LaneTable before = table_;
  const Status refused = table_.Correct(SessionId{1}, Needs(15, 60));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().message, "session 1 needs 25 bytes more, and 20 are free");
  EXPECT_EQ(table_, before);
  EXPECT_TRUE(table_.Correct(SessionId{1}, Needs(10, 60))) << "to the last byte";
  EXPECT_FALSE(table_.Correct(SessionId{2}, Needs(11, 20)));
}

TEST_F(LaneTableTest, WhatASessionGivesBackPaysForWhatItTakes) {
  Admit(1, Needs(50, 50));
  EXPECT_TRUE(table_.Correct(SessionId{1}, Needs(20, 80)));
  table_.BoundaryOfAll();
  EXPECT_FALSE(table_.Correct(SessionId{1}, Needs(30, 70))) << "the lane is 80 long until its boundary";
  ASSERT_TRUE(table_.Correct(SessionId{1}, Needs(20, 70)));
  table_.BoundaryOfAll();
  EXPECT_TRUE(table_.Correct(SessionId{1}, Needs(30, 70)));
}

TEST_F(LaneTableTest, WhatIsCorrectedDownIsFreeForOthers) {
  Admit(1, Needs(40, 60));
  ASSERT_TRUE(table_.Correct(SessionId{1}, Needs(10, 30)));
  EXPECT_EQ(table_.free(), 30U) << "persistent bytes at once";
  table_.BoundaryOfAll();
  EXPECT_EQ(table_.free(), 60U);
}

TEST_F(LaneTableTest, UnderABudgetThatFellBelowWhatIsInUseNobodyIsAdmitted) {
  Admit(1, Needs(30, 40));
  Admit(2, Needs(10, 20));
  table_.SetBudget(70);
  EXPECT_EQ(table_.overhang(), 30U);
  EXPECT_EQ(table_.free(), 0U);
  const LaneAnswer answer = table_.FindLane(Needs(0, 0));
  EXPECT_EQ(answer.fit, LaneFit::kQueue) << "not even who needs nothing";
  EXPECT_EQ(answer.must_leave, 30U);
  EXPECT_FALSE(table_.Correct(SessionId{2}, Needs(11, 20)));
  EXPECT_TRUE(table_.Correct(SessionId{2}, Needs(9, 20)));
  EXPECT_FALSE(table_.Correct(SessionId{2}, Needs(10, 20))) << "what was given back is gone";
  Leave(2);
  EXPECT_EQ(table_.overhang(), 0U);
  EXPECT_EQ(FitOf(Needs(0, 10)), LaneFit::kReuse);
}

TEST_F(LaneTableTest, ABudgetThatRisesAgainAdmitsAsBefore) {
  Admit(1, Needs(30, 40));
  table_.SetBudget(0);
  EXPECT_EQ(table_.overhang(), 70U);
  table_.SetBudget(100);
  EXPECT_EQ(table_.overhang(), 0U);
  EXPECT_EQ(FitOf(Needs(10, 20)), LaneFit::kNew);
}

TEST_F(LaneTableTest, AnAnswerThatIsOutOfDateIsRefused) {
  const LaneAnswer answer = table_.FindLane(Needs(10, 50));
  Admit(1, Needs(10, 50));
  const auto late = table_.Admit(SessionId{2}, Needs(10, 50), answer);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
  const SessionNeed large = Needs(90, 60);
  EXPECT_EQ(table_.Admit(SessionId{2}, large, table_.FindLane(large)).error().code, ErrorCode::kUnavailable);
}

TEST_F(LaneTableTest, NamesThatAreThereOrAreNotAreTold) {
  Admit(1, Needs(1, 1));
  EXPECT_EQ(table_.Admit(SessionId{1}, Needs(1, 1), table_.FindLane(Needs(1, 1))).error().code, ErrorCode::kConflict);
  EXPECT_EQ(table_.Leave(SessionId{2}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(table_.Correct(SessionId{2}, Needs(1, 1)).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(table_.Boundary(LaneId{9}).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(table_.Find(SessionId{2}));
}

TEST(LaneTable, ThereAreNoMoreLanesThanAreOfUse) {
  LaneTable table(100, 1);
  for (std::uint64_t i = 1; i <= 42; ++i) {
    const SessionNeed need = Needs(1, i);
    ASSERT_TRUE(table.Admit(SessionId{i}, need, table.FindLane(need)));
    table.BoundaryOfAll();
  }
  EXPECT_EQ(table.use(), (LaneUse{.persistent = 42, .lanes = 42})) << "ΣP and the largest E";
}

TEST_F(LaneTableTest, NobodySharesTheLaneOfASessionThatTakesNoTurns) {
  SessionNeed alone = Needs(10, 40);
  alone.alone = true;
  Admit(1, alone);
  EXPECT_EQ(FitOf(Needs(0, 51)), LaneFit::kQueue) << "not into that lane, nor by making it longer";
  const LaneId shared = Admit(2, Needs(0, 40));
  alone.ephemeral = 30;
  const LaneAnswer answer = table_.FindLane(alone);
  EXPECT_EQ(answer.fit, LaneFit::kQueue) << "nor does it share that of others";
  EXPECT_EQ(answer.needed, 40U);
  EXPECT_EQ(Admit(3, Needs(0, 20)), shared);
  alone.alone = true;
  EXPECT_EQ(table_.Correct(SessionId{3}, alone).error().code, ErrorCode::kConflict);
}

TEST_F(LaneTableTest, WhatIsHadIsCountedWhetherThereIsRoomOrNot) {
  Admit(1, Needs(50, 30));
  ASSERT_TRUE(table_.Have(SessionId{2}, Needs(40, 10)));
  EXPECT_EQ(table_.overhang(), 30U);
  EXPECT_EQ(table_.lanes().size(), 2U);
  EXPECT_EQ(FitOf(Needs(0, 0)), LaneFit::kQueue);
  ASSERT_TRUE(table_.Have(SessionId{2}, Needs(5, 10)));
  EXPECT_EQ(table_.overhang(), 0U);
  EXPECT_EQ(table_.free(), 5U);
  Leave(1);
  EXPECT_EQ(table_.free(), 85U) << "what was too much is allowed no more";
}

TEST_F(LaneTableTest, WhoHasSomeAlreadyMayJoinALane) {
  ASSERT_TRUE(table_.Have(SessionId{1}, Needs(10, 20)));
  const LaneId lane = table_.lanes()[0].id;
  ASSERT_TRUE(table_.Have(SessionId{2}, Needs(10, 30), lane));
  ASSERT_EQ(table_.lanes().size(), 1U);
  EXPECT_EQ(table_.lanes()[0].next, 30U);
  EXPECT_EQ(table_.lanes()[0].length, 20U) << "until its boundary";
  SessionNeed alone = Needs(1, 1);
  alone.alone = true;
  EXPECT_EQ(table_.Have(SessionId{3}, alone, lane).error().code, ErrorCode::kConflict);
  EXPECT_EQ(table_.Have(SessionId{3}, Needs(1, 1), LaneId{77}).error().code, ErrorCode::kNotFound);
  const LaneTable before = table_;
  EXPECT_EQ(table_.Have(SessionId{3}, Needs(kMost, 1)).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(table_, before) << "what is refused changes nothing";
}

}  // namespace
}  // namespace tandem
