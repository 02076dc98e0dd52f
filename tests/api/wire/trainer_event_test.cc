#include "api/wire/trainer_event.h"

#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tandem {
namespace {

const std::vector<TrainerEvent>& Samples() {
  static const std::vector<TrainerEvent> samples = {
      PlanEvent{.first_step = 3, .total_steps = 90, .examples = 1000, .evaluation_examples = 10, .parameters = 5},
      StepEvent{.step = 7, .epoch = 2, .loss = 0.1, .learning_rate = 1e-5},
      EvaluationEvent{.step = 7, .loss = 0.25, .accuracy = 0.9, .best = true},
      EvaluationEvent{.step = 7, .loss = 0.25, .accuracy = std::nullopt, .best = false},
      CheckpointEvent{.step = 7, .file = "/a b/ü", .bytes = std::uint64_t{1} << 40, .checksum = 0xffffffff},
      CheckpointEvent{.step = 7, .file = "x", .problem = "no \"space\"\n left"},
      SkippedEvent{.file = "x", .why = "torn"},
      EstimateEvent{.estimate = {.persistent = {.weights = 1, .optimizer = 2, .data = 3, .framework = 1ULL << 40},
                                 .ephemeral = 5,
                                 .peak = "Conv 'a'",
                                 .batch = 6}},
      EstimateEvent{.estimate = {.batch = 6, .fit = FitEstimate{.kept = 1ULL << 40, .least = 7, .slowdown = 0.125}}},
      MemoryEvent{.use = {.persistent = 1ULL << 63, .ephemeral = 8}},
      EndEvent{.outcome = TrainerOutcome::kStoppedEarly, .step = 9, .baseline = 0.5, .best = 0.75},
      EndEvent{.outcome = TrainerOutcome::kFailed, .error = {ErrorCode::kInvalidArgument, "the data is empty"}}};
  return samples;
}

TEST(TrainerEvent, ReadsBackWhatWasWritten) {
  for (const TrainerEvent& event : Samples()) {
    const std::string line = ToLine(event);
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    const auto read = ParseTrainerLine(line);
    ASSERT_TRUE(read) << line << ": " << read.error().message;
    EXPECT_EQ(*read, event) << line;
  }
}

TEST(TrainerEvent, ALongMessageIsCutAndStaysReadable) {
  const auto read = ParseTrainerLine(ToLine(SkippedEvent{.file = std::string(100'000, 'x'), .why = "\xff\xfe"}));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<SkippedEvent>(*read).file.size(), 4096U);
}

TEST(TrainerEvent, WhatIsNotFiniteDoesNotBreakTheLine) {
  const auto read = ParseTrainerLine(ToLine(StepEvent{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(read);
}

TEST(TrainerEvent, RefusesWhatIsNone) {
  for (const std::string line :
       {"", "x", "[]", "{}", "1", R"({"event":"nonsense"})", R"({"event":5})", R"({"event":"step"})",
        R"({"event":"step","step":-1,"epoch":0,"loss":1,"learning_rate":1})",
        R"({"event":"step","step":1.5,"epoch":0,"loss":1,"learning_rate":1})",
        R"({"event":"step","step":1,"epoch":0,"loss":"high","learning_rate":1})",
        R"({"event":"step","step":1,"epoch":0,"loss":1e999,"learning_rate":1})",
        R"({"event":"end","outcome":"glory","step":1,"code":"internal","message":""})",
        R"({"event":"checkpoint","step":1,"file":"x","bytes":-5,"checksum":1,"problem":""})"}) {
    EXPECT_FALSE(ParseTrainerLine(line)) << line;
  }
  EXPECT_FALSE(ParseTrainerLine(std::string(kMaxTrainerLine + 1, ' ')));
}

TEST(TrainerEvent, GarbageIsOnlyRefused) {
  EXPECT_TRUE(rc::check([](const std::string& garbage) { (void)ParseTrainerLine(garbage); }));
  EXPECT_TRUE(rc::check([] {
    std::string line = ToLine(Samples()[*rc::gen::inRange<std::size_t>(0, Samples().size())]);
    line[*rc::gen::inRange<std::size_t>(0, line.size())] = *rc::gen::arbitrary<char>();
    (void)ParseTrainerLine(line);
  }));
}

}  // namespace
}  // namespace tandem
