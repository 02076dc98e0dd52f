#include "memory/lane_outlook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LaneOutlookTest : public ::testing::Test {
 protected:
  void Admit(std::uint64_t session, const SessionNeed& need) {
    ASSERT_TRUE(table_.Admit(SessionId{session}, need, table_.FindLane(need)));
  }

  LaneTable table_{100};
};

TEST_F(LaneOutlookTest, OnceOthersHaveEndedOnlyThoseWhoStayAreThere) {
  Admit(1, {.persistent = 10, .ephemeral = 5, .stays = true});
  Admit(2, {.persistent = 20, .ephemeral = 60});
  Admit(3, {.persistent = 5, .ephemeral = 60});
  const LaneTable later = OnceOthersEnd(table_);
  EXPECT_EQ(later.use(), (LaneUse{.persistent = 10, .lanes = 5}));
  EXPECT_EQ(later.budget(), 100U);
  EXPECT_EQ(table_.use().persistent, 35U) << "the table itself is as it was";
}

TEST_F(LaneOutlookTest, LanesHaveShrunkByThen) {
  Admit(1, {.persistent = 10, .ephemeral = 80});
  Admit(2, {.persistent = 5, .ephemeral = 30, .stays = true});
  ASSERT_EQ(table_.lanes().size(), 1U);
  EXPECT_EQ(OnceOthersEnd(table_).use(), (LaneUse{.persistent = 5, .lanes = 30}));
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 60}), ElementsAre(SessionId{1}));
}

TEST_F(LaneOutlookTest, TheSmallestSessionThatMakesRoomAloneIsNamed) {
  Admit(1, {.persistent = 10, .ephemeral = 10});
  Admit(2, {.persistent = 20, .ephemeral = 10});
  Admit(3, {.persistent = 40, .ephemeral = 10});
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 20}), ElementsAre(SessionId{1})) << "and its lane";
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 21}), ElementsAre(SessionId{2}));
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 35}), ElementsAre(SessionId{3}));
}

TEST_F(LaneOutlookTest, WhereOneIsNotEnoughThoseAreNamedWithoutWhomItWouldNotDo) {
  Admit(1, {.persistent = 20});
  Admit(2, {.persistent = 30});
  Admit(3, {.persistent = 50});
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 75}), ElementsAre(SessionId{3}, SessionId{2}));
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 70}), ElementsAre(SessionId{3}, SessionId{2}));
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 60}), ElementsAre(SessionId{3}, SessionId{2}));
}

TEST_F(LaneOutlookTest, ModelsThatAreServedAreTheLastToBeNamed) {
  Admit(1, {.persistent = 60, .stays = true});
  Admit(2, {.persistent = 20});
  Admit(3, {.persistent = 20});
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 30}), ElementsAre(SessionId{3}, SessionId{2}))
      << "although the model alone would do";
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 50}), ElementsAre(SessionId{1}));
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 100}), ElementsAre(SessionId{3}, SessionId{2}, SessionId{1}));
}

TEST_F(LaneOutlookTest, NobodyIsNamedInVain) {
  Admit(1, {.persistent = 60});
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 40}), IsEmpty()) << "it fits";
  EXPECT_THAT(WhoMustLeave(table_, {.persistent = 101}), IsEmpty()) << "it never will";
}

}  // namespace
}  // namespace tandem
