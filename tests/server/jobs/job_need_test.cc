#include "server/jobs/job_need.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace tandem::jobs {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TrainingJob Job(OptimizerKind optimizer, std::int64_t batch) {
  TrainingJob job;
  job.optimizer.kind = optimizer;
  job.batch_size = batch;
  return job;
}

TEST(JobNeed, EachStateOfTheOptimizerIsOneMoreCopyAndOneInACheckpoint) {
  const ModelSize model{.weight_bytes = 100 * kMiB, .nodes = 10};
  TrainingJob sgd = Job(OptimizerKind::kSgd, 1);
  const std::uint64_t plain = GuessNeed(sgd, model).persistent;
  sgd.optimizer.momentum = 0.9;
  EXPECT_EQ(GuessNeed(sgd, model).persistent, plain + 200 * kMiB);
  EXPECT_EQ(GuessNeed(Job(OptimizerKind::kAdam, 1), model).persistent, plain + 400 * kMiB);
  EXPECT_GT(plain, 300 * kMiB) << "weights, gradients, the copy";
}

TEST(JobNeed, ActivationsGrowWithTheBatch) {
  for (const bool convolutions : {false, true}) {
    const ModelSize model{.weight_bytes = 16 * kMiB, .nodes = 50, .convolutions = convolutions};
    const std::uint64_t one = GuessNeed(Job(OptimizerKind::kSgd, 1), model).ephemeral;
    const std::uint64_t many = GuessNeed(Job(OptimizerKind::kSgd, 33), model).ephemeral;
    const std::uint64_t none = 16 * kMiB;
    EXPECT_EQ(many - none, 33 * (one - none));
    EXPECT_GT(one, none);
  }
}

TEST(JobNeed, NoSizeIsTooLargeToBeAddedUp) {
  const JobNeed need = GuessNeed(Job(OptimizerKind::kAdamW, 1 << 20),
                                 {.weight_bytes = ~std::uint64_t{0}, .nodes = ~std::uint64_t{0}, .convolutions = true});
  EXPECT_GE(need.total(), std::uint64_t{1} << 40);
  EXPECT_LT(need.total(), std::uint64_t{1} << 50);
}

TEST(JobNeed, WhatTheJobSaysIsWhatItIsPromised) {
  TrainingJob job = Job(OptimizerKind::kAdam, 32);
  job.memory = 2'000 * kMiB;
  const JobNeed enough = GuessNeed(job, {.weight_bytes = kMiB, .nodes = 3});
  EXPECT_TRUE(enough.bounded);
  EXPECT_EQ(enough.total(), 2'000 * kMiB);
  job.memory = 40 * kMiB;
  EXPECT_EQ(GuessNeed(job, {.weight_bytes = kMiB, .nodes = 3}).total(), 40 * kMiB);
}

TEST(JobNeed, IsCorrectedAtOnceWhenItIsMore) {
  const JobNeed promised{.persistent = 300 * kMiB, .ephemeral = 100 * kMiB};
  EXPECT_EQ(CorrectNeed(promised, 400 * kMiB, false), promised);
  const JobNeed more = CorrectNeed(promised, 800 * kMiB, false);
  EXPECT_EQ(more.persistent, 300 * kMiB);
  EXPECT_EQ(more.total(), 900 * kMiB) << "an eighth to spare";
}

TEST(JobNeed, IsCorrectedOnceStepsWereSeenWhenItIsLess) {
  const JobNeed promised{.persistent = 300 * kMiB, .ephemeral = 700 * kMiB};
  EXPECT_EQ(CorrectNeed(promised, 400 * kMiB, false), promised);
  EXPECT_EQ(CorrectNeed(promised, 400 * kMiB, true).total(), 450 * kMiB);
  EXPECT_EQ(CorrectNeed(promised, 160 * kMiB, true), (JobNeed{.persistent = 54 * kMiB, .ephemeral = 126 * kMiB}))
      << "less than P alone: in the same proportion";
  EXPECT_EQ(CorrectNeed(promised, 880 * kMiB, true), promised) << "so little is not worth a change";
  EXPECT_EQ(CorrectNeed(promised, 0, true), promised) << "nothing was measured";
}

TEST(JobNeed, WhatIsBoundedKeepsWhatItWasPromised) {
  const JobNeed promised{.persistent = 300 * kMiB, .ephemeral = 700 * kMiB, .bounded = true};
  EXPECT_EQ(CorrectNeed(promised, 100 * kMiB, true), promised);
  EXPECT_EQ(CorrectNeed(promised, 2000 * kMiB, true), promised);
}

TEST(JobNeed, AModelThatIsNotThereIsAnError) {
  EXPECT_FALSE(GuessNeedOf({}, "/nowhere/model.onnx"));
}

TEST(NeedAsNoted, PrefersWhatWasMeasured) {
  EXPECT_EQ(NeedAsNoted(R"({"estimate":{"persistent":{"total":5},"ephemeral":6},"measured":null})"),
            (JobNeed{.persistent = 5, .ephemeral = 6}));
  EXPECT_EQ(NeedAsNoted(R"({"estimate":{"persistent":{"total":5},"ephemeral":6},
                            "measured":{"persistent":7,"ephemeral":8}})"),
            (JobNeed{.persistent = 7, .ephemeral = 8}));
  for (const char* bad : {"", "null", "[]", R"({"estimate":null,"measured":null})", R"({"measured":{"persistent":-1}})",
                          R"({"estimate":{"persistent":5,"ephemeral":6}})"}) {
    EXPECT_EQ(NeedAsNoted(bad), std::nullopt) << bad;
  }
}

TEST(NeedAsTold, IsNoMoreThanAnyMachineHas) {
  const JobNeed need = NeedAsTold(~std::uint64_t{0}, ~std::uint64_t{0});
  EXPECT_LT(need.total(), std::uint64_t{1} << 50);
  EXPECT_GT(need.total(), std::uint64_t{1} << 40);
}

}  // namespace
}  // namespace tandem::jobs
