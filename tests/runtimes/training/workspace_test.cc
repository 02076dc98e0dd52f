#include "runtimes/training/estimate/workspace.h"

#include <gtest/gtest.h>

namespace tandem::training {
namespace {

constexpr ConvolutionMachine kTwoThreads{.threads = 2, .vector = 16};

ConvolutionShape Wide() {
  return {.batch = 8,
          .in_channels = 32,
          .out_channels = 64,
          .in = {28, 28},
          .out = {28, 28},
          .kernel = {3, 3},
          .padded = true};
}

constexpr std::uint64_t kInput = 8 * 32 * 28 * 28 * 4;
constexpr std::uint64_t kOutput = 8 * 64 * 28 * 28 * 4;
constexpr std::uint64_t kWeight = 64 * 32 * 9 * 4;

TEST(Workspace, LargeBlocksAreWholePages) {
  EXPECT_EQ(RoundedBlock(1), 16U);
  EXPECT_EQ(RoundedBlock(300'000), 303'104U);
}

TEST(Workspace, ABlockedConvolutionCopiesWhatItReadsAndWhatItMakes) {
  const Workspace forward = ForwardWorkspace(Wide(), kTwoThreads);
  EXPECT_EQ(forward.computing, kInput + kWeight + kOutput);
  EXPECT_EQ(forward.finishing, kOutput);
  const Workspace input = InputGradientWorkspace(Wide(), kTwoThreads);
  EXPECT_EQ(input.computing, kInput + kWeight + kOutput);
  EXPECT_EQ(input.finishing, kInput);
}

TEST(Workspace, ThreadsSumGradientsOfWeightsForThemselves) {
  const Workspace two = WeightGradientWorkspace(Wide(), kTwoThreads);
  EXPECT_EQ(two.computing, kInput + kOutput + 2 * kWeight);
  const Workspace one = WeightGradientWorkspace(Wide(), {.threads = 1, .vector = 16});
  EXPECT_EQ(one.computing, kInput + kOutput + kWeight);
  EXPECT_EQ(one.finishing, kWeight);
}

TEST(Workspace, ChannelsFillBlocksButTheFewOfAPicture) {
  ConvolutionShape shape = Wide();
  shape.in_channels = 20;
  EXPECT_EQ(ForwardWorkspace(shape, kTwoThreads).computing, kInput + kWeight + kOutput);
  shape.in_channels = 3;
  EXPECT_EQ(ForwardWorkspace(shape, kTwoThreads).computing, RoundedBlock(64 * 3 * 9 * 4) + kOutput);
}

TEST(Workspace, OneSmallExampleIsUnfolded) {
  ConvolutionShape shape = Wide();
  shape.batch = 1;
  shape.in_channels = 16;
  ASSERT_FALSE(IsBlocked(shape, kTwoThreads));
  const Workspace forward = ForwardWorkspace(shape, kTwoThreads);
  EXPECT_EQ(forward.computing, 0U);
  EXPECT_EQ(forward.finishing, RoundedBlock(16 * 9 * 28 * 28 * 4));
  shape.kernel = {1, 1};
  shape.padded = false;
  EXPECT_EQ(ForwardWorkspace(shape, kTwoThreads).finishing, 0U) << "it is its own column";
}

TEST(Workspace, DoublePrecisionIsUnfolded) {
  ConvolutionShape shape = Wide();
  shape.element = 8;
  shape.single_precision = false;
  EXPECT_FALSE(IsBlocked(shape, kTwoThreads));
  EXPECT_EQ(ForwardWorkspace(shape, kTwoThreads).finishing, RoundedBlock(8ULL * 32 * 9 * 28 * 28 * 8));
}

}  // namespace
}  // namespace tandem::training
