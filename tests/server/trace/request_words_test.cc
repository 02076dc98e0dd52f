#include "server/trace/request_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const MonotonicTime kArrival = MonotonicTime(1h);

// Answered 20 ms after its arrival.
RequestStory Answered() {
  RequestStory story;
  story.number = 7;
  story.model = "m";
  story.arrived = kArrival;
  story.answered = kArrival + 20ms;
  story.told = kArrival + 1s;
  return story;
}

RequestStory Refused(Admitted verdict) {
  RequestStory story = Answered();
  story.answered = kArrival + 100us;
  story.error = ErrorCode::kUnavailable;
  story.outcome = RequestOutcome::kRejected;
  story.admission =
      RequestAdmission{.at = kArrival + 50us, .request = 7, .verdict = verdict, .left = -2ms, .waiting = 9};
  return story;
}

BatchRun Batch(std::uint64_t batch, const char* model, std::chrono::nanoseconds from, std::chrono::nanoseconds to) {
  return {.batch = batch,
          .model = model,
          .version = 1,
          .elements = 1,
          .requests = 1,
          .began = kArrival + from,
          .ended = kArrival + to};
}

TEST(RequestWords, EveryRefusalHasItsReason) {
  const auto second = [](Admitted verdict) { return WordsOf(Refused(verdict)).at(1); };
  EXPECT_EQ(second(Admitted::kStopping), "refused at arrival: the server was shutting down");
  EXPECT_EQ(second(Admitted::kGone), "refused at arrival: its client had gone already");
  EXPECT_EQ(second(Admitted::kLate), "refused at arrival: its deadline had passed 2.0 ms before");
  EXPECT_EQ(second(Admitted::kModelFull), "refused at arrival: as many requests waited for its model as may");
  EXPECT_EQ(second(Admitted::kFull), "refused at arrival: the queue was full, 9 requests waited");
  EXPECT_THAT(second(Admitted::kHopeless), HasSubstr("what its own run takes was not known"));
}

TEST(RequestWords, ManyRunsAreSummedUpByModel) {
  RequestStory story = Answered();
  story.admission = RequestAdmission{.at = kArrival, .request = 7};
  story.meanwhile = {Batch(1, "resnet", -1ms, 4ms), Batch(2, "resnet", 4ms, 9ms), Batch(3, "tiny", 9ms, 10ms)};
  story.runs = {Batch(4, "m", 10ms, 20ms)};
  EXPECT_THAT(WordsOf(story),
              Contains("waited 10.0 ms: 2 runs of resnet (9.0 ms), 1 run of tiny (1.0 ms) stood before it"));
}

TEST(RequestWords, ALateAnswerAndAFailedRun) {
  RequestStory story = Answered();
  story.deadline = kArrival + 15ms;
  EXPECT_EQ(WordsOf(story)[0], "answered after 20.0 ms, 5.0 ms after its deadline");
  story.error = ErrorCode::kInternal;
  story.outcome = RequestOutcome::kError;
  story.runs = {Batch(4, "m", 10ms, 14ms), Batch(5, "m", 14ms, 19ms)};
  story.runs[0].requests = 3;
  story.runs[0].error = ErrorCode::kInternal;
  EXPECT_THAT(
      WordsOf(story),
      ElementsAre("failed after 20.0 ms: the server's own fault; its answer and the log say why",
                  "ran for 4.0 ms together with 2 other requests in batch 4 of m, version 1, on worker 0; the run "
                  "failed",
                  "ran again, apart, for 5.0 ms alone in batch 5 of m, version 1, on worker 0",
                  "handed over 1.0 ms after its run"));
}

TEST(RequestWords, SayWhenTrainingWasHeldAndWhy) {
  RequestStory story = Answered();
  story.training = {{.from = kArrival - 30ms,
                     .to = kArrival + 12ms,
                     .hold = HoldReason::kQuota,
                     .trainers = 1,
                     .quota_left = 12ms,
                     .until_refill = 40ms},
                    {.from = kArrival + 12ms, .trainers = 1}};
  EXPECT_THAT(
      WordsOf(story),
      Contains("training was held from 30.0 ms before its arrival to 12.0 ms after its arrival because the CPU "
               "time of the period was kept for requests (12.0 ms of it were left, the next began in 40.0 ms)"));
  story.training = {{.from = kArrival, .hold = HoldReason::kRequests, .trainers = 1, .requests = 2}};
  EXPECT_THAT(WordsOf(story),
              Contains("training was held from 0 µs after its arrival to now because of 2 requests under way"));
  story.training = {{.from = kArrival, .hold_heavy = HoldReason::kRequests, .trainers = 1, .requests = 1}};
  EXPECT_THAT(WordsOf(story), Contains(HasSubstr("heavy operators of training were held from")));
  story.training = {{.from = kArrival - 1s, .trainers = 2}};
  EXPECT_THAT(WordsOf(story), Contains("training was let run all the time: 2 trainers"));
}

TEST(RequestWords, ManyHoldsAreSummedUp) {
  RequestStory story = Answered();
  for (int i = 0; i < 5; ++i) {
    story.training.push_back({.from = kArrival + i * 4ms,
                              .to = kArrival + i * 4ms + 1ms,
                              .hold = HoldReason::kRequests,
                              .trainers = 1,
                              .requests = 1});
  }
  EXPECT_THAT(WordsOf(story),
              Contains("training was held 5 times, 5.0 ms in all, the last time because 1 request under "
                       "way"));
}

TEST(TimeText, FitsTheSize) {
  EXPECT_EQ(TimeText(40us), "40 µs");
  EXPECT_EQ(TimeText(3123us), "3.1 ms");
  EXPECT_EQ(TimeText(-240ms), "240 ms");
  EXPECT_EQ(TimeText(12'500ms), "12.5 s");
}

}  // namespace
}  // namespace tandem::trace
