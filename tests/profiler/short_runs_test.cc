#include "profiler/short_runs.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

void ObserveMany(ShortRuns& runs, int count, std::size_t bytes, std::chrono::nanoseconds took) {
  for (int i = 0; i < count; ++i) runs.Observe(bytes, took);
}

TEST(ShortRunsTest, NothingIsExpectedBeforeItIsProven) {
  ShortRuns runs;
  EXPECT_FALSE(runs.Expects(256));
  ObserveMany(runs, ShortRuns::kProof - 1, 256, 10us);
  EXPECT_FALSE(runs.Expects(256));
  runs.Observe(256, 10us);
  EXPECT_TRUE(runs.Expects(256));
}

TEST(ShortRunsTest, SmallInputsProveNothingAboutLargeOnes) {
  ShortRuns runs;
  ObserveMany(runs, ShortRuns::kProof, 256, 10us);
  EXPECT_TRUE(runs.Expects(300));
  EXPECT_FALSE(runs.Expects(64 << 10));
  EXPECT_FALSE(runs.Expects(0));
}

TEST(ShortRunsTest, ASlowerRunHasToBeMadeUpFor) {
  ShortRuns runs;
  ObserveMany(runs, ShortRuns::kProof, 256, 10us);
  runs.Observe(256, ShortRuns::kShort);
  EXPECT_FALSE(runs.Expects(256));
  ObserveMany(runs, ShortRuns::kProof, 256, 10us);
  EXPECT_TRUE(runs.Expects(256));
}

TEST(ShortRunsTest, ALongRunIsHeldAgainstTheModelForLong) {
  ShortRuns runs;
  ObserveMany(runs, ShortRuns::kProof, 256, 10us);
  runs.Observe(256, ShortRuns::kLong + 1ns);
  ObserveMany(runs, ShortRuns::kProofAfterLong / 2, 256, 10us);
  runs.Observe(256, ShortRuns::kShort);
  ObserveMany(runs, ShortRuns::kProofAfterLong / 2 - 1, 256, 10us);
  EXPECT_FALSE(runs.Expects(256));
  runs.Observe(256, 10us);
  EXPECT_TRUE(runs.Expects(256));
}

TEST(ShortRunsTest, TakesInputsOfAnySize) {
  ShortRuns runs;
  ObserveMany(runs, ShortRuns::kProof, SIZE_MAX, 10us);
  ObserveMany(runs, ShortRuns::kProof, 0, 10us);
  EXPECT_TRUE(runs.Expects(SIZE_MAX));
  EXPECT_TRUE(runs.Expects(0));
}

}  // namespace
}  // namespace tandem
