#include "server/trace/training_spans.h"

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
TrainingNotes::Standing Trainers(std::size_t count) {
  return {.trainers = count, .hold = {}, .hold_heavy = {}};
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
  notes_.Decided(At(5ms), HoldReason::kRequests, {}, {.requests = 1, .trainers = 1, .quotas = {}});
  notes_.Held(At(5ms), 0, HoldReason::kRequests);
  notes_.Began(At(6ms), 1, 2, Trainers(2));
  notes_.Decided(At(8ms), {}, {}, {.requests = 0, .trainers = 2, .quotas = {}});
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
  notes_.Decided(At(5ms), HoldReason::kQuota, {}, {.requests = 1, .trainers = 1, .quotas = quotas});
  notes_.Decided(At(6ms), {}, {}, {.requests = 0, .trainers = 1, .quotas = quotas});
  const auto spans = Spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_THAT(ReasonOf(spans[0]), HasSubstr("12.0 ms of it were left, the next began in 40.0 ms"));
  EXPECT_EQ(ReasonOf(spans[1]),
            "12.0 ms of the period's CPU time were left, more than requests were likely to need until the next, 40.0 "
            "ms away");
}

TEST_F(TrainingSpansTest, OfHeavyOperatorsAreTheirOwn) {
  notes_.Decided(At(5ms), {}, HoldReason::kRequests, {.requests = 3, .trainers = 1, .quotas = {}});
  EXPECT_THAT(States(), ElementsAre("heavy operators held"));
  EXPECT_EQ(ReasonOf(Spans()[0]), "3 requests under way");
}

TEST_F(TrainingSpansTest, ThatBeginWithATrainerKnowWhatWasDecidedBefore) {
  notes_.Ended(At(1ms), 0, {.trainers = 1, .hold = HoldReason::kRequests, .hold_heavy = {}});
  notes_.Ended(At(2ms), 1, {.trainers = 0, .hold = HoldReason::kRequests, .hold_heavy = {}});
  notes_.Began(At(3ms), 2, 1, {.trainers = 1, .hold = {}, .hold_heavy = HoldReason::kRequests});
  EXPECT_THAT(States(), ElementsAre("held", "none", "heavy operators held"));
}

TEST_F(TrainingSpansTest, SayWhenTrainingIsStoppedToLearnOfALimit) {
  notes_.Decided(At(5ms), HoldReason::kQuota, {}, {.requests = 0, .trainers = 1, .quotas = {}, .learning = true});
  notes_.Decided(At(6ms), HoldReason::kQuota, {}, {.requests = 0, .trainers = 1, .quotas = {}});
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

TEST(TrainingNotes, WithoutARecorderSayNothing) {
  const TrainingNotes notes(nullptr);
  notes.Began(At(1ms), 0, 2, Trainers(1));
  notes.Decided(At(1ms), HoldReason::kPaused, {}, {});
  EXPECT_EQ(HoldOf(HoldCode(HoldReason::kPaused)), HoldReason::kPaused);
  EXPECT_EQ(HoldOf(HoldCode(std::nullopt)), std::nullopt);
}

}  // namespace
}  // namespace tandem::trace
