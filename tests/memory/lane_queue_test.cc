#include "memory/lane_queue.h"

#include <optional>

#include <gtest/gtest.h>

namespace tandem {
namespace {

class LaneQueueTest : public ::testing::Test {
 protected:
  void Add(std::uint64_t session, const SessionNeed& need, std::int64_t rank = 0) {
    ASSERT_TRUE(queue_.Add(SessionId{session}, need, rank));
  }
  // Admits who is next and says who that was; 0: nobody.
  std::uint64_t AdmitNext() {
    const auto turn = queue_.Next(table_);
    if (!turn) return 0;
    EXPECT_TRUE(table_.Admit(turn->session, turn->need, turn->answer));
    EXPECT_TRUE(queue_.Take(turn->session));
    return std::to_underlying(turn->session);
  }
  void Leave(std::uint64_t session) { ASSERT_TRUE(table_.Leave(SessionId{session})); }

  // As many small sessions as may come one after the other before nobody is admitted any more; each leaves before the
  // next comes.
  int SmallOnesAdmitted(std::uint64_t first, int most) {
    int admitted = 0;
    for (int i = 0; i < most; ++i) {
      Add(first + static_cast<std::uint64_t>(i), {.persistent = 10});
      const std::uint64_t next = AdmitNext();
      if (next == 0) break;
      Leave(next);
      ++admitted;
    }
    return admitted;
  }

  LaneTable table_{100};
  LaneQueue queue_{3};
};

TEST_F(LaneQueueTest, WhoFitsIsAdmittedInTheOrderOfArrival) {
  Add(1, {.persistent = 50});
  Add(2, {.persistent = 50});
  Add(3, {.persistent = 50});
  EXPECT_EQ(AdmitNext(), 1U);
  EXPECT_EQ(AdmitNext(), 2U);
  EXPECT_EQ(AdmitNext(), 0U);
  Leave(1);
  EXPECT_EQ(AdmitNext(), 3U);
}

TEST_F(LaneQueueTest, ASmallOneGoesBeforeALargeOneThatDoesNotFit) {
  Add(1, {.persistent = 60});
  Add(2, {.persistent = 60});
  Add(3, {.persistent = 40});
  EXPECT_EQ(AdmitNext(), 1U);
  EXPECT_EQ(AdmitNext(), 3U);
  ASSERT_EQ(queue_.waiting().size(), 1U);
  EXPECT_EQ(queue_.waiting()[0].overtaken, 1);
}

TEST_F(LaneQueueTest, ALargeOneIsOvertakenOnlySoOften) {
  Add(1, {.persistent = 60});
  EXPECT_EQ(AdmitNext(), 1U);
  Add(2, {.persistent = 60});
  EXPECT_EQ(queue_.ReservedFor(table_), std::nullopt);
  EXPECT_EQ(SmallOnesAdmitted(100, 50), 3);
  EXPECT_EQ(queue_.ReservedFor(table_), SessionId{2});
  Leave(1);
  EXPECT_EQ(AdmitNext(), 2U);
  EXPECT_EQ(AdmitNext(), 103U) << "who was held back is next";
}

TEST_F(LaneQueueTest, OfThoseWhoFitTheSmallestRankIsAdmitted) {
  Add(1, {.persistent = 50}, 3);
  Add(2, {.persistent = 50}, 1);
  Add(3, {.persistent = 200}, 0);
  Add(4, {.persistent = 50}, 1);
  EXPECT_EQ(AdmitNext(), 2U);
  EXPECT_EQ(AdmitNext(), 4U);
  EXPECT_EQ(queue_.waiting()[0].overtaken, 2);
}

TEST_F(LaneQueueTest, ALargeRankIsOvertakenOnlySoOftenToo) {
  Add(1, {.persistent = 50}, 100);
  for (std::uint64_t i = 2; i <= 9; ++i) Add(i, {.persistent = 50}, 1);
  for (const std::uint64_t next : {2U, 3U}) EXPECT_EQ(AdmitNext(), next);
  Leave(2);
  EXPECT_EQ(AdmitNext(), 4U);
  Leave(3);
  EXPECT_EQ(AdmitNext(), 1U);
}

TEST_F(LaneQueueTest, WhoNeedsMoreThanTheBudgetKeepsNobodyWaiting) {
  Add(1, {.persistent = 101});
  EXPECT_EQ(SmallOnesAdmitted(100, 50), 50);
  table_.SetBudget(200);
  EXPECT_EQ(AdmitNext(), 1U) << "but is admitted when the budget has become large enough";
}

TEST_F(LaneQueueTest, WhoNeedsWhatServedModelsHoldKeepsNobodyWaiting) {
  Add(1, {.persistent = 50, .stays = true});
  EXPECT_EQ(AdmitNext(), 1U);
  Add(2, {.persistent = 60});
  EXPECT_EQ(SmallOnesAdmitted(100, 50), 50);
  EXPECT_EQ(queue_.ReservedFor(table_), std::nullopt);
  Leave(1);
  EXPECT_EQ(AdmitNext(), 2U);
}

TEST_F(LaneQueueTest, WhoIsCancelledWaitsNoMoreAndHasOvertakenNobody) {
  Add(1, {.persistent = 101});
  Add(2, {.persistent = 100});
  EXPECT_TRUE(queue_.Remove(SessionId{2}));
  EXPECT_EQ(AdmitNext(), 0U);
  EXPECT_EQ(queue_.waiting()[0].overtaken, 0);
}

TEST_F(LaneQueueTest, WhoIsCorrectedKeepsItsPlace) {
  Add(1, {.persistent = 101});
  Add(2, {.persistent = 100});
  ASSERT_TRUE(queue_.Correct(SessionId{1}, {.persistent = 100}));
  EXPECT_EQ(AdmitNext(), 1U);
}

TEST_F(LaneQueueTest, NamesThatAreThereOrAreNotAreTold) {
  Add(1, {});
  EXPECT_EQ(queue_.Add(SessionId{1}, {}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(queue_.Remove(SessionId{2}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(queue_.Take(SessionId{2}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(queue_.Correct(SessionId{2}, {}).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tandem
