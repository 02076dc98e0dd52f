#include "colocation/turn_book.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

SessionId Id(std::uint64_t number) {
  return SessionId{number};
}
TurnBook::Order Go(std::uint64_t number) {
  return {.session = Id(number), .go = true};
}
TurnBook::Order Wait(std::uint64_t number) {
  return {.session = Id(number), .go = false};
}

class TurnBookTest : public testing::Test {
 protected:
  // A job in a lane of its own that keeps the device busy.
  void Add(std::uint64_t number, int priority = 0) { AddTo(number, number, 1, priority); }
  void AddTo(std::uint64_t number, std::uint64_t lane, double width, int priority = 0) {
    book_.Add({.session = Id(number), .lane = LaneId{lane}, .order = number, .priority = priority, .width = width},
              now_);
  }
  // It comes to its boundary.
  void Comes(std::uint64_t number) { book_.Saw(Id(number), true, false, now_); }
  std::vector<TurnBook::Order> Decide() { return book_.Decide(*policy_, now_); }
  std::vector<TurnBook::Order> After(std::chrono::nanoseconds time) {
    now_ += time;
    return Decide();
  }
  void Use(std::string_view policy) { policy_ = MakeJobPolicy(policy).value(); }
  TurnBook::View Of(std::uint64_t number) { return book_.Find(Id(number), now_).value(); }

  MonotonicTime now_{1h};
  std::unique_ptr<const JobPolicy> policy_ = MakeJobPolicy("fair").value();
  TurnBook book_;
};

TEST_F(TurnBookTest, OneAloneRunsOnWithoutEnd) {
  Add(1);
  EXPECT_THAT(Decide(), IsEmpty()) << "its trainer loads";
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  EXPECT_FALSE(book_.Due()) << "nobody else wants a turn";
  EXPECT_THAT(After(1h), IsEmpty());
}

TEST_F(TurnBookTest, ATurnEndsAtTheBoundaryAfterItsTimeAndTheOtherBegins) {
  Add(1);
  Add(2);
  Comes(1);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  ASSERT_TRUE(book_.Due());
  EXPECT_EQ(*book_.Due(), now_ + TurnBook::kLeastTurn);
  EXPECT_THAT(After(TurnBook::kLeastTurn), ElementsAre(Wait(1)));
  EXPECT_THAT(After(100ms), IsEmpty()) << "it is in the middle of an iteration";
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(2))) << "the other has had less";
}

TEST_F(TurnBookTest, WhoIsNextByThePolicyMayBeWhoItWas) {
  Use("fifo");
  Add(1);
  Add(2);
  Comes(1);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  EXPECT_THAT(After(TurnBook::kLeastTurn), ElementsAre(Wait(1)));
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  EXPECT_EQ(Of(1).turns, 2U);
}

TEST_F(TurnBookTest, ANewcomerThatGoesFirstIsGivenTheNextBoundary) {
  Use("priority");
  Add(1);
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  now_ += 1s;
  Add(2, /*priority=*/5);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Wait(1))) << "at once, not when a turn is over";
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(2)));
}

TEST_F(TurnBookTest, AnotherPolicyHoldsFromTheNextBoundaryOn) {
  Use("fifo");
  Add(1);
  Add(2, /*priority=*/5);
  Comes(1);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  Use("priority");
  EXPECT_THAT(Decide(), ElementsAre(Wait(1)));
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(2)));
  Use("pack");
  EXPECT_THAT(Decide(), ElementsAre(Go(1))) << "all side by side";
}

TEST_F(TurnBookTest, InOneLaneTurnsAreTakenUnderEveryPolicy) {
  Use("pack");
  AddTo(1, 7, 0.1);
  AddTo(2, 7, 0.1);
  AddTo(3, 8, 0.1);
  for (const std::uint64_t job : {1, 2, 3}) Comes(job);
  EXPECT_THAT(Decide(), ElementsAre(Go(1), Go(3)));
}

TEST_F(TurnBookTest, WhoLeavesRoomHasOthersBesideIt) {
  AddTo(1, 1, 0.5);
  AddTo(2, 2, 0.5);
  AddTo(3, 3, 1);
  for (const std::uint64_t job : {1, 2, 3}) Comes(job);
  EXPECT_THAT(Decide(), ElementsAre(Go(1), Go(2)));
  EXPECT_THAT(After(TurnBook::kLeastTurn), ElementsAre(Wait(1), Wait(2)));
  Comes(1);
  EXPECT_THAT(Decide(), IsEmpty()) << "the third wants the whole device, and the second has not come yet";
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(3)));
}

TEST_F(TurnBookTest, NobodyWaitsForOneThatIsPausedInMidIteration) {
  Add(1);
  Add(2);
  Comes(1);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  now_ += 1ms;
  book_.SetPaused(Id(1), true, now_);
  EXPECT_THAT(Decide(), ElementsAre(Wait(1), Go(2)));
  now_ += 10s;
  EXPECT_EQ(Of(1).ran, 1ms) << "what it stands still does not count";
  book_.SetPaused(Id(1), false, now_);
  Comes(1);
  EXPECT_THAT(After(TurnBook::kLeastTurn), ElementsAre(Wait(2)));
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  // It begins with the least that anybody has had: the other is owed nothing for ten seconds.
  EXPECT_THAT(After(TurnBook::kLeastTurn + 1ms), ElementsAre(Wait(1)));
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(2)));
}

TEST_F(TurnBookTest, WhatSomebodyHasInALaneIsWaitedForWhateverHoldsHim) {
  AddTo(1, 7, 1);
  AddTo(2, 7, 1);
  Add(3);
  for (const std::uint64_t job : {1, 2, 3}) Comes(job);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  book_.SetPaused(Id(1), true, now_);
  EXPECT_THAT(Decide(), ElementsAre(Wait(1), Go(3))) << "who is of another lane need not wait";
  Comes(1);
  EXPECT_THAT(After(TurnBook::kLeastTurn), ElementsAre(Wait(3)));
  Comes(3);
  EXPECT_THAT(Decide(), ElementsAre(Go(2))) << "at its boundary it has nothing there any more";
  EXPECT_THAT(After(2 * TurnBook::kLeastTurn), ElementsAre(Wait(2)));
  book_.SetPaused(Id(1), false, now_);
  EXPECT_THAT(After(TurnBook::kPatience), ElementsAre(Go(3))) << "nobody else can run: one does not come";
  EXPECT_TRUE(Of(2).overdue);
  EXPECT_THAT(After(1h), IsEmpty());
  book_.Remove(Id(2));
  EXPECT_THAT(Decide(), ElementsAre(Wait(3)));
  Comes(3);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
}

TEST_F(TurnBookTest, OneThatIsPausedWhileItWaitsGetsNoTurn) {
  Add(1);
  Comes(1);
  book_.SetPaused(Id(1), true, now_);
  EXPECT_THAT(Decide(), IsEmpty());
  book_.SetPaused(Id(1), false, now_);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
}

TEST_F(TurnBookTest, OneThatGoesOrIsDoneLeavesItsTurnToOthers) {
  for (const std::uint64_t job : {1, 2, 3}) Add(job);
  for (const std::uint64_t job : {1, 2, 3}) Comes(job);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  book_.Remove(Id(1));
  EXPECT_THAT(Decide(), ElementsAre(Go(2)));
  book_.Saw(Id(2), false, true, now_);
  EXPECT_THAT(Decide(), ElementsAre(Go(3)));
  EXPECT_EQ(Of(2).state, TurnState::kDone);
  Comes(2);
  EXPECT_EQ(Of(2).state, TurnState::kDone) << "for good";
  EXPECT_FALSE(book_.Find(Id(1), now_));
}

TEST_F(TurnBookTest, OneThatDoesNotComeIsNotWaitedForForEver) {
  Add(1);
  Add(2);
  Comes(1);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  EXPECT_THAT(After(TurnBook::kLeastTurn), ElementsAre(Wait(1)));
  ASSERT_TRUE(book_.Due());
  EXPECT_EQ(*book_.Due(), now_ + TurnBook::kPatience);
  EXPECT_THAT(After(TurnBook::kPatience - 1ns), IsEmpty());
  book_.Excuse(Id(1), 3s);
  EXPECT_THAT(After(3s), IsEmpty()) << "so long it was stopped, which is not its fault";
  EXPECT_THAT(After(1ns), ElementsAre(Go(2)));
  EXPECT_TRUE(Of(1).overdue);
  Comes(1);
  EXPECT_FALSE(Of(1).overdue) << "it has its turns again";
  EXPECT_EQ(Of(1).state, TurnState::kWaits);
}

TEST_F(TurnBookTest, AnIterationThatDoesNotEndIsNotTakenForALongOne) {
  Add(1);
  Add(2);
  Comes(1);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  book_.SetProgress(Id(1), 0, 100, now_);
  now_ += 10ms;
  book_.SetProgress(Id(1), 1, 100, now_);
  EXPECT_THAT(After(10ms), ElementsAre(Wait(1)));
  EXPECT_THAT(After(TurnBook::kPatience / 2), IsEmpty());
  EXPECT_EQ(Of(1).leaving, TurnBook::kPatience / 2);
  EXPECT_THAT(After(TurnBook::kPatience / 2), ElementsAre(Go(2))) << "its iterations take 10 ms by what it told";
  EXPECT_TRUE(Of(1).overdue);
  EXPECT_EQ(Of(1).leaving, TurnBook::kPatience);
}

TEST_F(TurnBookTest, OneThatIsRecalledLeavesItsTurnAndHasItAgain) {
  Add(1);
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  book_.Recall(Id(1));
  EXPECT_THAT(Decide(), ElementsAre(Wait(1)));
  EXPECT_THAT(Decide(), IsEmpty());
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  EXPECT_THAT(After(1h), IsEmpty()) << "once";
  EXPECT_EQ(Of(1).leaving, 0s);
}

TEST_F(TurnBookTest, OneWithLongIterationsIsGivenTimeForThem) {
  Use("priority");
  Add(1);
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  book_.SetProgress(Id(1), 5, 100, now_);
  now_ += 40s;
  book_.SetProgress(Id(1), 7, 100, now_);
  EXPECT_EQ(Of(1).remaining, 93 * 20s);
  Add(2, /*priority=*/5);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Wait(1)));
  EXPECT_EQ(*book_.Due(), now_ + 200s);
}

TEST_F(TurnBookTest, TheShortestGoesFirstOnceTimesAreKnown) {
  Use("srtf");
  Add(1);
  Add(2);
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
  book_.SetProgress(Id(1), 0, 100, now_);
  now_ += 1s;
  book_.SetProgress(Id(1), 1, 100, now_);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Wait(1))) << "of the other nothing is known yet: an iteration tells";
  Comes(1);
  EXPECT_THAT(Decide(), ElementsAre(Go(2)));
  book_.SetProgress(Id(2), 0, 300, now_);
  EXPECT_THAT(After(1s), ElementsAre(Wait(2)));
  book_.SetProgress(Id(2), 1, 300, now_);
  Comes(2);
  EXPECT_THAT(Decide(), ElementsAre(Go(1)));
}

TEST_F(TurnBookTest, WhatATrainerTellsOfItsProgressIsBounded) {
  Use("srtf");
  Add(1);
  Comes(1);
  (void)Decide();
  book_.SetProgress(Id(1), -5, -1, now_);
  EXPECT_FALSE(Of(1).remaining);
  now_ += 1s;
  book_.SetProgress(Id(1), std::numeric_limits<std::int64_t>::max(), 7, now_);
  EXPECT_EQ(Of(1).remaining, 0ns);
  book_.SetProgress(Id(1), 1, std::numeric_limits<std::int64_t>::max(), now_);
  EXPECT_GT(*Of(1).remaining, 24h);
}

// Whatever comes in whatever order: never two at once who are not to be, nobody is forgotten, and all are served alike.
RC_GTEST_PROP(TurnBookProperties, TurnsAreTakenAndNobodyStandsStillForEver, ()) {
  const auto names = JobPolicyNames();
  const std::string_view name = names[*rc::gen::inRange<std::size_t>(0, names.size())];
  auto policy = MakeJobPolicy(name).value();
  const int jobs = *rc::gen::inRange(1, 6);
  const auto lanes = *rc::gen::inRange<std::uint64_t>(1, 4);
  TurnBook book;
  MonotonicTime now{1h};
  std::map<SessionId, bool> runs;  // As was ordered: in an iteration, or waiting.
  std::map<SessionId, bool> told_to_wait;
  for (int i = 1; i <= jobs; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    book.Add({.session = Id(number), .lane = LaneId{number % lanes}, .order = number}, now);
    book.Saw(Id(number), true, false, now);
    runs[Id(number)] = false;
  }
  for (int step = 0; step < 200; ++step) {
    now += std::chrono::milliseconds(*rc::gen::inRange(0, 30));
    for (const TurnBook::Order& order : book.Decide(*policy, now)) {
      if (order.go) {
        RC_ASSERT(!runs[order.session]);
        runs[order.session] = true;
        told_to_wait[order.session] = false;
      } else {
        RC_ASSERT(runs[order.session]);
        told_to_wait[order.session] = true;
      }
    }
    std::map<LaneId, int> in_lane;
    int running = 0;
    for (const auto& view : book.Jobs(now)) {
      if (!runs[view.job.session]) continue;
      ++running;
      RC_ASSERT(++in_lane[view.job.lane] == 1);
    }
    if (name != "pack") RC_ASSERT(running <= 1);
    RC_ASSERT(running >= 1);
    // Somebody comes to its boundary.
    for (auto& [session, running_now] : runs) {
      if (!running_now || !told_to_wait[session] || *rc::gen::inRange(0, 3) != 0) continue;
      running_now = false;
      book.Saw(session, true, false, now);
    }
  }
}

}  // namespace
}  // namespace tandem
