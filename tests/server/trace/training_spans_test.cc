#include "server/trace/training_spans.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "colocation/training_notes.h"
#include "server/trace/flight_copy.h"

namespace tandem::trace {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

MonotonicTime At(std::chrono::nanoseconds time) {
  return MonotonicTime(time);
}

// None of them is held.
TrainingNotes::Standing Trainers(TrainerCounts counts) {
  return {.trainers = counts, .hold = {}, .hold_heavy = {}};
}
TrainingNotes::Standing Trainers(std::int64_t count) {
  return Trainers(TrainerCounts{.running = count});
}

class TrainingSpansTest : public ::testing::Test {
 protected:
  std::vector<TrainingSpan> Spans() const { return TrainingSpans(ByTime(recorder_.training().Last())); }
  std::vector<std::string> States() const {
    std::vector<std::string> states;
    for (const TrainingSpan& span : Spans()) states.push_back(StateOf(span));
    return states;
  }

  FlightRecorder recorder_{1024};
  TrainingNotes notes_{&recorder_};
};

TEST_F(TrainingSpansTest, BeginWhereSomethingChanges) {
  notes_.Began(At(1ms), 0, 2, Trainers(1));
  notes_.Decided(At(5ms), HoldReason::kRequests, {}, {.requests = 1, .trainers = {.running = 1}, .quotas = {}});
  notes_.Held(At(5ms), 0, HoldReason::kRequests);
  notes_.Began(At(6ms), 1, 2, Trainers(2));
  notes_.Decided(At(8ms), {}, {}, {.requests = 0, .trainers = {.running = 2}, .quotas = {}});
  notes_.Ended(At(9ms), 1, Trainers(1));
  notes_.Ended(At(10ms), 0, Trainers(0));
  EXPECT_THAT(States(), ElementsAre("runs", "held", "runs", "none"));
  const auto spans = Spans();
  EXPECT_EQ(spans[1].from, At(5ms));
  EXPECT_EQ(spans[1].to, At(8ms));
  EXPECT_EQ(spans[1].trainers, 2);
  EXPECT_EQ(ReasonOf(spans[1]), "1 request under way");
  EXPECT_EQ(spans[3].to, std::nullopt);
  EXPECT_EQ(ReasonOf(spans[3]), "nothing is trained");
}

TEST_F(TrainingSpansTest, OfALimitSayWhatWasLeftOfTheTightest) {
  const std::vector<QuotaView> quotas = {{.quota = 100ms, .left = 90ms, .until_refill = 50ms},
                                         {.quota = 100ms, .left = 12ms, .until_refill = 40ms}};
  notes_.Decided(At(5ms), HoldReason::kQuota, {}, {.requests = 1, .trainers = {.running = 1}, .quotas = quotas});
  notes_.Decided(At(6ms), {}, {}, {.requests = 0, .trainers = {.running = 1}, .quotas = quotas});
  const auto spans = Spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_THAT(ReasonOf(spans[0]), HasSubstr("12.0 ms of it were left, the next began in 40.0 ms"));
  EXPECT_EQ(ReasonOf(spans[1]),
            "12.0 ms of the period's CPU time were left, more than requests were likely to need until the next, 40.0 "
            "ms away");
}

TEST_F(TrainingSpansTest, OfHeavyOperatorsAreTheirOwn) {
  notes_.Decided(At(5ms), {}, HoldReason::kRequests, {.requests = 3, .trainers = {.running = 1}, .quotas = {}});
  EXPECT_THAT(States(), ElementsAre("heavy operators held"));
  EXPECT_EQ(ReasonOf(Spans()[0]), "3 requests under way");
}

TEST_F(TrainingSpansTest, ThatBeginWithATrainerKnowWhatWasDecidedBefore) {
  notes_.Ended(At(1ms), 0, {.trainers = {.running = 1}, .hold = HoldReason::kRequests, .hold_heavy = {}});
  notes_.Ended(At(2ms), 1, {.trainers = {.running = 0}, .hold = HoldReason::kRequests, .hold_heavy = {}});
  notes_.Began(At(3ms), 2, 1, {.trainers = {.running = 1}, .hold = {}, .hold_heavy = HoldReason::kRequests});
  EXPECT_THAT(States(), ElementsAre("held", "none", "heavy operators held"));
}

TEST_F(TrainingSpansTest, SayWhenTrainingIsStoppedToLearnOfALimit) {
  notes_.Decided(At(5ms), HoldReason::kQuota, {},
                 {.requests = 0, .trainers = {.running = 1}, .quotas = {}, .learning = true});
  notes_.Decided(At(6ms), HoldReason::kQuota, {}, {.requests = 0, .trainers = {.running = 1}, .quotas = {}});
  ASSERT_EQ(Spans().size(), 2u);
  EXPECT_EQ(ReasonOf(Spans()[0]), "it was to be learnt when the periods of the CPU limit begin");
  EXPECT_THAT(ReasonOf(Spans()[1]), HasSubstr("kept for requests"));
}

TEST_F(TrainingSpansTest, OfEachTrainerEndWithIt) {
  notes_.Began(At(1ms), 0, 2, Trainers(1));
  notes_.Held(At(5ms), 0, HoldReason::kQuota);
  notes_.Began(At(6ms), 1, 2, Trainers(2));
  notes_.Held(At(7ms), 0, std::nullopt);
  notes_.Ended(At(9ms), 0, Trainers(1));
  const auto spans = TrainerSpans(ByTime(recorder_.training().Last()));
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].to, At(5ms));
  EXPECT_EQ(spans[1].hold, HoldReason::kQuota);
  EXPECT_EQ(spans[1].to, At(7ms));
  EXPECT_EQ(spans[2].trainer, 1u);
  EXPECT_EQ(spans[2].to, std::nullopt);
  EXPECT_EQ(spans[3].to, At(9ms));
}

TEST_F(TrainingSpansTest, AreHeldByWhoeverPausedAllTrainers) {
  notes_.Began(At(1ms), 0, 2, Trainers(1));
  notes_.Stands(At(3ms), 0, HoldReason::kPaused, Trainers({.paused = 1}));
  // Decided before the pause was heard of.
  notes_.Decided(At(4ms), HoldReason::kRequests, {}, {.requests = 1, .trainers = {.paused = 1}, .quotas = {}});
  notes_.Stands(At(6ms), 0, {}, Trainers(1));
  EXPECT_THAT(States(), ElementsAre("runs", "held", "runs"));
  const auto spans = Spans();
  EXPECT_EQ(spans[1].hold, HoldReason::kPaused);
  EXPECT_EQ(spans[1].from, At(3ms));
  EXPECT_EQ(spans[1].to, At(6ms));
  EXPECT_EQ(spans[1].trainers, 1);
  EXPECT_EQ(ReasonOf(spans[1]), "a person paused it");
}

TEST_F(TrainingSpansTest, GoOnWhileAnyTrainerIsNotPaused) {
  notes_.Began(At(1ms), 0, 2, Trainers(1));
  notes_.Began(At(2ms), 1, 2, Trainers(2));
  notes_.Stands(At(3ms), 1, HoldReason::kPaused, Trainers({.running = 1, .paused = 1}));
  EXPECT_THAT(States(), ElementsAre("runs"));
  notes_.Stands(At(5ms), 0, HoldReason::kPaused, Trainers({.paused = 2}));
  notes_.Ended(At(7ms), 1, Trainers({.paused = 1}));
  notes_.Ended(At(8ms), 0, Trainers(0));
  EXPECT_THAT(States(), ElementsAre("runs", "held", "none"));
  EXPECT_EQ(Spans()[1].trainers, 2);
  EXPECT_EQ(Spans()[1].to, At(8ms));
}

class TurnSpansTest : public TrainingSpansTest {
 protected:
  // Of two trainers one waits; after 3 ms the other does.
  TurnSpansTest() {
    notes_.Began(At(0ms), 0, 2, Trainers(1));
    notes_.Began(At(1ms), 1, 2, Trainers(2));
    notes_.Stands(At(2ms), 1, HoldReason::kTurn, Trainers({.running = 1, .waiting = 1}));
    notes_.Stands(At(3ms), 0, HoldReason::kTurn, Trainers({.waiting = 2}));
    notes_.Stands(At(3ms), 1, {}, Trainers({.running = 1, .waiting = 1}));
  }
  TrainerCounts Between(std::chrono::nanoseconds from, std::chrono::nanoseconds to) const {
    return TrainersBetween(ByTime(recorder_.training().Last()), At(from), At(to));
  }
};

TEST_F(TurnSpansTest, TurnsAreNoDecisions) {
  EXPECT_THAT(States(), ElementsAre("runs"));
  EXPECT_EQ(Spans()[0].trainers, 2);
}

TEST_F(TurnSpansTest, WhoWasThereIsToldOfWhenMostCouldRun) {
  EXPECT_EQ(Between(-2ms, -1ms), TrainerCounts());
  EXPECT_EQ(Between(500us, 600us), (TrainerCounts{.running = 1}));
  EXPECT_EQ(Between(500us, 1500us), (TrainerCounts{.running = 2}));
  EXPECT_EQ(Between(2500us, 4ms), (TrainerCounts{.running = 1, .waiting = 1})) << "a turn goes from one to the other";
  EXPECT_EQ(Between(5ms, 6ms), (TrainerCounts{.running = 1, .waiting = 1})) << "what was before lasts";
  notes_.Ended(At(7ms), 1, Trainers({.waiting = 1}));
  notes_.Stands(At(7ms), 0, {}, Trainers(1));
  EXPECT_EQ(Between(8ms, 9ms), (TrainerCounts{.running = 1})) << "and nothing else";
}

TEST_F(TrainingSpansTest, OfEachTrainerTellWhyItStandsStill) {
  notes_.Began(At(1ms), 0, 2, Trainers(1), 7);
  notes_.Stands(At(2ms), 0, HoldReason::kTurn, Trainers({.waiting = 1}), 7);
  notes_.Stands(At(4ms), 0, HoldReason::kRequests, Trainers(1), 7);
  notes_.Held(At(5ms), 0, std::nullopt, 7);
  notes_.Stands(At(6ms), 0, HoldReason::kPaused, Trainers({.paused = 1}), 7);
  notes_.Ended(At(9ms), 0, Trainers(0));
  std::vector<std::optional<HoldReason>> holds;
  const auto spans = TrainerSpans(ByTime(recorder_.training().Last()));
  for (const TrainerSpan& span : spans) {
    holds.push_back(span.hold);
    EXPECT_EQ(span.job, 7);
  }
  EXPECT_THAT(holds,
              ElementsAre(std::nullopt, HoldReason::kTurn, HoldReason::kRequests, std::nullopt, HoldReason::kPaused));
  EXPECT_EQ(spans.back().from, At(6ms));
  EXPECT_EQ(spans.back().to, At(9ms));
}

TEST(TrainingNotes, WithoutARecorderSayNothing) {
  const TrainingNotes notes(nullptr);
  notes.Began(At(1ms), 0, 2, Trainers(1));
  notes.Stands(At(1ms), 0, HoldReason::kPaused, Trainers(1));
  notes.Decided(At(1ms), HoldReason::kPaused, {}, {});
  EXPECT_EQ(HoldOf(HoldCode(HoldReason::kPaused)), HoldReason::kPaused);
  EXPECT_EQ(HoldOf(HoldCode(std::nullopt)), std::nullopt);
}

}  // namespace
}  // namespace tandem::trace
