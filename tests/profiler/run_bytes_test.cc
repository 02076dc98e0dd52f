#include "profiler/run_bytes.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(RunBytes, AGuessHoldsUntilARunWasMade) {
  RunBytes runs;
  std::vector<std::uint64_t> told;
  runs.Listen(800, 100, [&](std::uint64_t bytes) { told.push_back(bytes); });
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(runs.Expected(), 800U);
  runs.Observe(100, 300);
  EXPECT_EQ(told, (std::vector<std::uint64_t>{300})) << "less than was guessed is news, too";
}

TEST(RunBytes, WhoListensLateHearsWhatWasSeenBefore) {
  RunBytes runs;
  runs.Observe(10, 50);
  std::uint64_t told = 0;
  runs.Listen(1, 10, [&](std::uint64_t bytes) { told = bytes; });
  EXPECT_EQ(told, 50U);
}

TEST(RunBytes, ASmallBatchTellsOfTheLargestInProportionUntilThatIsSeen) {
  RunBytes runs;
  runs.Listen(1, 800, [](std::uint64_t) {});
  runs.Observe(100, 30);
  EXPECT_EQ(runs.Expected(), 240U);
  runs.Observe(300, 60);
  EXPECT_EQ(runs.Expected(), 180U) << "a third as large, rounded up";
  runs.Observe(800, 110);
  EXPECT_EQ(runs.Expected(), 110U);
  runs.Observe(100, 40);
  EXPECT_EQ(runs.Expected(), 110U);
  runs.Observe(100, 200);
  EXPECT_EQ(runs.Expected(), 200U) << "a run has taken it, whatever its inputs";
  runs.Observe(1600, 120);
  EXPECT_EQ(runs.Expected(), 200U);
}

TEST(RunBytes, ExtremesAreBounded) {
  RunBytes runs;
  runs.Listen(7, ~std::uint64_t{0}, [](std::uint64_t) {});
  runs.Observe(5, 0);
  EXPECT_EQ(runs.Expected(), 7U) << "a run that had no lane says nothing";
  runs.Observe(0, 1000);
  EXPECT_EQ(runs.Expected(), std::uint64_t{1} << 48);
  runs.Observe(~std::uint64_t{0}, ~std::uint64_t{0});
  EXPECT_EQ(runs.Expected(), std::uint64_t{1} << 48);
}

TEST(RunBytes, WhatIsToldLastIsWhatHolds) {
  RunBytes runs;
  std::atomic<std::uint64_t> told{0};
  runs.Listen(1, 1, [&](std::uint64_t bytes) { told = bytes; });
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&runs, t] {
      for (std::uint64_t i = 1; i <= 5000; ++i) runs.Observe(i, i * 4 + t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told, runs.Expected());
  EXPECT_EQ(runs.Expected(), 20'003U);
}

}  // namespace
}  // namespace tandem
