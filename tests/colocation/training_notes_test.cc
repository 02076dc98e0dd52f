// What an arbiter tells the flight recorder.

#include "colocation/training_notes.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "colocation/arbiter.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

template <typename Event>
std::vector<Event> All(const FlightRecorder& recorder) {
  std::vector<Event> events;
  recorder.training().ForEach([&](const FlightRecord& record) {
    if (const auto event = As<Event>(record)) events.push_back(*event);
  });
  return events;
}

TEST(TrainingNotes, OfAnArbiterTellWhomItHeldAndWhy) {
  FlightRecorder recorder(1024);
  const auto policy = MakeColocationPolicy("pause").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {}, &recorder);
  const StoppableChild child;
  const auto decisions = [&](std::size_t count) {
    for (int i = 0; i < 10'000 && All<TrainingDecision>(recorder).size() < count; ++i) std::this_thread::sleep_for(1ms);
    return All<TrainingDecision>(recorder);
  };
  {
    const auto lease = arbiter.Admit({.pidfd = child.pidfd(), .threads = 3});
    arbiter.RequestBegan();
    ASSERT_EQ(decisions(1).size(), 1u);
    arbiter.RequestBegan();
    arbiter.RequestEnded();
    arbiter.RequestEnded();
    ASSERT_EQ(decisions(2).size(), 2u) << "only changes are told";
  }
  const auto decided = decisions(2);
  EXPECT_EQ(HoldOf(decided[0].hold), HoldReason::kRequests);
  EXPECT_GE(decided[0].requests, 1);
  EXPECT_EQ(decided[0].trainers, TrainerCounts{.running = 1});
  EXPECT_EQ(HoldOf(decided[1].hold), std::nullopt);
  const auto held = All<TrainerHeld>(recorder);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(HoldOf(held[0].hold), HoldReason::kRequests);
  EXPECT_EQ(HoldOf(held[1].hold), std::nullopt);
  ASSERT_EQ(All<TrainerBegan>(recorder).size(), 1u);
  EXPECT_EQ(All<TrainerBegan>(recorder)[0].threads, 3);
  ASSERT_EQ(All<TrainerEnded>(recorder).size(), 1u);
  EXPECT_EQ(All<TrainerEnded>(recorder)[0].trainers, TrainerCounts());
}

class StandingNotesTest : public testing::Test {
 protected:
  // What was told last, of those that stand still by themselves.
  struct Told {
    std::int64_t job = 0;
    std::optional<HoldReason> why;
    TrainerCounts trainers;

    friend bool operator==(const Told&, const Told&) = default;
  };
  std::vector<Told> TakeTold() {
    std::vector<Told> told;
    for (const TrainerStands& one : All<TrainerStands>(recorder_)) {
      told.push_back({.job = one.job, .why = HoldOf(one.hold), .trainers = one.trainers});
    }
    told.erase(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(std::exchange(taken_, told.size())));
    return told;
  }

  FlightRecorder recorder_{1024};
  std::size_t taken_ = 0;
};

// Under a policy that stops nobody.
class IdleStandingNotesTest : public StandingNotesTest {
 protected:
  const std::unique_ptr<const ColocationPolicy> idle_ = MakeColocationPolicy("idle").value();
  Arbiter arbiter_{RealClock::Instance(), *idle_, {}, {}, &recorder_};
  const std::unique_ptr<TrainerLease> one_ = arbiter_.Admit({.job = 7});
  const std::unique_ptr<TrainerLease> other_ = arbiter_.Admit({.job = 8});
};

TEST_F(IdleStandingNotesTest, TellWhoIsPausedAndWhoCouldRunThen) {
  EXPECT_EQ(All<TrainerBegan>(recorder_)[1].trainers, TrainerCounts{.running = 2});
  EXPECT_EQ(TakeTold(), std::vector<Told>());
  one_->SetPaused(true);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kPaused, {.running = 1, .paused = 1}}}));
  one_->SetPaused(true);
  EXPECT_EQ(TakeTold(), std::vector<Told>()) << "it is so already";
  other_->SetPaused(true);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{8, HoldReason::kPaused, {.paused = 2}}}));
  one_->SetPaused(false);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, std::nullopt, {.running = 1, .paused = 1}}}));
}

TEST_F(IdleStandingNotesTest, TellATurnFromAPause) {
  one_->SetWaiting(true);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kTurn, {.running = 1, .waiting = 1}}}));
  one_->SetPausedAtBoundary(true);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kPaused, {.running = 1, .paused = 1}}}));
  one_->SetPausedAtBoundary(false);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kTurn, {.running = 1, .waiting = 1}}}));
  one_->SetWaiting(false);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, std::nullopt, {.running = 2}}}));
  one_->SetPausedAtBoundary(true);
  EXPECT_EQ(TakeTold(), std::vector<Told>()) << "it has not come to its boundary";
}

TEST_F(IdleStandingNotesTest, OneThatIsLetOnForGoodRuns) {
  one_->SetPaused(true);
  one_->SetWaiting(true);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kPaused, {.running = 1, .paused = 1}}}));
  one_->SetExempt();
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, std::nullopt, {.running = 2}}}));
}

TEST_F(StandingNotesTest, OneThatHasItsTurnIsHeldAsOthersAre) {
  const auto policy = MakeColocationPolicy("pause").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {}, &recorder_);
  const StoppableChild child;
  const StoppableChild other_child;
  const auto lease = arbiter.Admit({.pidfd = child.pidfd(), .job = 7});
  const auto other = arbiter.Admit({.pidfd = other_child.pidfd(), .job = 8});
  lease->SetWaiting(true);
  ASSERT_EQ(TakeTold().size(), 1u);
  arbiter.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return other->held(); }));
  const auto decided = All<TrainingDecision>(recorder_).back();
  EXPECT_EQ(decided.trainers, (TrainerCounts{.running = 1, .waiting = 1}));
  const auto held = All<TrainerHeld>(recorder_);
  ASSERT_EQ(held.size(), 1u) << "who waits for a turn is not held as well";
  EXPECT_EQ(held[0].job, 8);
  lease->SetWaiting(false);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kRequests, {.running = 2}}}));
  EXPECT_EQ(HoldOf(All<TrainerStands>(recorder_).back().decided_hold), HoldReason::kRequests);
  lease->SetPaused(true);
  EXPECT_EQ(TakeTold(), (std::vector<Told>{{7, HoldReason::kPaused, {.running = 1, .paused = 1}}}));
}

}  // namespace
}  // namespace tandem
