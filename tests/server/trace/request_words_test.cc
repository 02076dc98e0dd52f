#include "server/trace/request_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/trace/story_text.h"
#include "server/trace/time_text.h"

namespace tandem::trace {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(RequestWords, OfALateRequestTheySayWhetherTrainingIsToBlame) {
  RequestStory story = Answered();
  story.deadline = kArrival + 16ms;
  story.slo = SloVerdict::kMissed;
  story.cause = MissCause::kTraining;
  story.added = 4200us;
  EXPECT_THAT(WordsOf(story), Contains("without training, which added up to 4.2 ms, it would have been in time"));
  EXPECT_EQ(StoryJson(story)["missed_by"].asString(), "training");
  EXPECT_EQ(StoryJson(story)["training_added_us"].asInt64(), 4200);
  story.cause = MissCause::kUnknown;
  EXPECT_THAT(WordsOf(story), Contains(HasSubstr("is not known: its model was not seen to run without for too long")));
  EXPECT_EQ(StoryJson(story)["missed_by"].asString(), "unknown");
  story.cause = MissCause::kOther;
  story.added = 1200us;
  EXPECT_THAT(WordsOf(story),
              Contains("training added at most 1.2 ms; without it, it would not have been in time either"));
  story.added = 0ns;
  EXPECT_THAT(WordsOf(story), Not(Contains(HasSubstr("training"))));
  EXPECT_TRUE(StoryJson(Answered())["missed_by"].isNull());
}

// One that waited for 10 ms while these ran.
RequestStory Waited(std::initializer_list<BatchRun> runs, int workers = 1, bool overwritten = false) {
  RequestStory story = Answered();
  story.admission = RequestAdmission{.at = kArrival, .request = 7};
  story.runs = {Batch(100, "m", 10ms, 20ms)};
  BatchRuns all;
  for (const BatchRun& run : runs) all[run.batch] = run;
  story.waiting = WaitBetween(kArrival, kArrival + 10ms, all, story.runs, workers, overwritten);
  return story;
}

BatchRun On(std::uint16_t worker, BatchRun run) {
  run.worker = worker;
  return run;
}

TEST(RequestWords, ManyRunsAreSummedUpByModel) {
  const RequestStory story =
      Waited({Batch(1, "resnet", -1ms, 4ms), Batch(2, "resnet", 4ms, 9ms), Batch(3, "tiny", 9ms, 10ms)});
  EXPECT_THAT(WordsOf(story),
              Contains("waited 10.0 ms: 2 runs of resnet (9.0 ms), 1 run of tiny (1.0 ms) stood before it"));
}

TEST(RequestWords, ARunOfAFrontEndIsNotBlamed) {
  const RequestStory story = Waited({On(kFrontEnd, Batch(1, "quick", -1ms, 4ms))});
  EXPECT_TRUE(story.waiting->others.empty());
  EXPECT_THAT(WordsOf(story), Contains("waited 10.0 ms: a worker was free and had to wake"));
}

TEST(RequestWords, OfSeveralWorkersAllMustBeBusy) {
  const RequestStory story = Waited({On(0, Batch(1, "a", -1ms, 6ms)), On(1, Batch(2, "b", 4ms, 9ms))}, 2);
  EXPECT_THAT(WordsOf(story), Contains("waited 10.0 ms: all 2 workers were busy for 2.0 ms of it, with 1 run of a (2.0 "
                                       "ms), 1 run of b (2.0 ms); for 8.0 ms of it a worker was free and had to wake"));
  EXPECT_THAT(WordsOf(Waited({On(0, Batch(1, "a", -1ms, 20ms))}, 2)),
              Contains("waited 10.0 ms: a worker was free and had to wake"));
}

TEST(RequestWords, OfTheRestOfAWaitSayWhatItWasFor) {
  RequestStory story = Waited({Batch(1, "a", -1ms, 3ms)});
  story.waits_for_company = true;
  EXPECT_THAT(WordsOf(story),
              Contains("waited 10.0 ms: batch 1 of a (1 request) was running for 3.0 ms of it; for 7.0 "
                       "ms of it a worker was free, and its model waits for company (max_queue_delay)"));
}

TEST(RequestWords, DoNotCallAWorkerFreeOfWhichNothingIsKept) {
  EXPECT_THAT(WordsOf(Waited({}, 1, true)),
              Contains("waited 10.0 ms: what some worker did then is overwritten: it may have been busy"));
  EXPECT_THAT(WordsOf(Waited({Batch(1, "a", -2ms, -1ms)}, 1, true)),
              Contains("waited 10.0 ms: a worker was free and had to wake"));
}

TEST(RequestWords, FitTheDecisionThatWasMade) {
  const auto second = [](RequestAdmission admission) {
    RequestStory story = Answered();
    story.admission = admission;
    return WordsOf(story).at(1);
  };
  RequestAdmission admission{.at = kArrival, .request = 7, .left = 10ms, .ahead = 2ms, .run = 30ms, .waiting = 3};
  admission.weight = RunWeight::kDoubtful;
  EXPECT_EQ(second(admission),
            "let in: 2.0 ms of work ahead, its own run did not count, as 30.0 ms is a guess or was learnt too long "
            "ago, deadline in 10.0 ms");
  admission.weight = RunWeight::kIgnored;
  EXPECT_EQ(second(admission), "let in, as there was room; 3 requests waited, deadline in 10.0 ms");
  admission.weight = RunWeight::kCounted;
  admission.verdict = Admitted::kHopeless;
  admission.run = 7800us;
  EXPECT_EQ(second(admission),
            "refused at arrival: 2.0 ms of work were ahead, its own run was expected to take up to 7.8 ms, deadline in "
            "10.0 ms, of which 500 µs are kept for its answer");
}

TEST(StoryText, ShowsAnIdWithoutItsControlCharacters) {
  RequestStory story = Answered();
  story.id = "a\x1b[2Jb\n  refused";
  EXPECT_THAT(StoryText(story), ::testing::StartsWith("request r-7 (id 'a\uFFFD[2Jb\uFFFD  refused') of model m\n"));
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
  story.trainers = {.running = 2};
  EXPECT_THAT(WordsOf(story), Contains("training was let run all the time: 2 trainers"));
  story.training = {{.from = kArrival + 15ms, .trainers = 2}};
  EXPECT_THAT(WordsOf(story), Contains("training was let run 5.0 ms of it: 2 trainers"));
  story.training_since = kArrival + 14ms;
  EXPECT_THAT(WordsOf(story), Contains("what was decided of training until 14.0 ms after its arrival is overwritten"));
}

TEST(RequestWords, SayWhoCouldNotTrain) {
  RequestStory story = Answered();
  story.training = {{.from = kArrival - 1s, .trainers = 2}};
  const auto words = [&](TrainerCounts trainers) {
    story.trainers = trainers;
    return WordsOf(story).back();
  };
  EXPECT_EQ(words({.running = 1, .waiting = 1}),
            "training was let run all the time: 1 trainer; 1 other waited for its "
            "turn");
  EXPECT_EQ(words({.running = 2, .waiting = 2, .paused = 1}),
            "training was let run all the time: 2 trainers; 2 others waited for their turns, 1 other was paused");
  EXPECT_EQ(words({.running = 1, .paused = 2}), "training was let run all the time: 1 trainer; 2 others were paused");
  EXPECT_EQ(words({.waiting = 1, .paused = 1}), "nobody trained: 1 trainer waited for its turn, 1 trainer was paused");
  EXPECT_EQ(StoryJson(story)["trainers"]["waiting"].asInt(), 1);
  EXPECT_EQ(StoryJson(story)["trainers"]["paused"].asInt(), 1);
  EXPECT_EQ(StoryJson(story)["trainers"]["running"].asInt(), 0);
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
