#include "bench/laps.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

// A second in which the requests took so long and training made so many steps.
Lap OneSecond(const std::vector<std::chrono::milliseconds>& requests, double steps, double cores = 0) {
  Lap lap{.latency = {}, .span = {.seconds = 1, .rates = {steps}, .cores = cores}};
  for (const auto& took : requests) lap.latency.Record(took);
  return lap;
}

TEST(DrawOrders, EverySideHasOneTurnInEveryLap) {
  const auto orders = DrawOrders(4, 20, 1);
  ASSERT_EQ(orders.size(), 20U);
  std::set<std::vector<std::size_t>> different;
  for (const auto& order : orders) {
    EXPECT_TRUE(std::ranges::is_permutation(order, std::vector<std::size_t>{0, 1, 2, 3}));
    different.insert(order);
  }
  EXPECT_GT(different.size(), 5U);
  EXPECT_EQ(orders, DrawOrders(4, 20, 1));
  EXPECT_NE(orders, DrawOrders(4, 20, 2));
}

TEST(Pool, PercentilesAreOfAllRequestsAndNotOfLaps) {
  std::vector<std::chrono::milliseconds> many(198, 1ms);
  many.push_back(9ms);
  const std::vector<Lap> laps = {OneSecond(many, 4), OneSecond({50ms}, 1)};
  Figures figures = Pool(laps);
  EXPECT_NEAR(figures["p99"], 0.001, 1e-5);  // The 198th of 200.
  EXPECT_NEAR(Pool(std::span(laps).subspan(1))["p99"], 0.05, 1e-4);
  EXPECT_EQ(Pool(std::vector{OneSecond({}, 4)})["p99"], 0);
}

TEST(Pool, RatesAreOfAllTheTime) {
  std::vector<Lap> laps = {OneSecond({}, 6, 1), OneSecond({}, 2, 0.5)};
  laps[1].span.seconds = 3;
  laps[1].span.rates = {1, 1};  // Of two jobs.
  Figures figures = Pool(laps);
  EXPECT_DOUBLE_EQ(figures["rate"], 3);
  EXPECT_DOUBLE_EQ(figures["cores"], 0.625);
}

TEST(Pool, PeriodsCountAsOftenAsThereWere) {
  std::vector<Lap> laps = {OneSecond({}, 1), OneSecond({}, 1)};
  EXPECT_EQ(Pool(laps)["throttled"], 0);
  laps[0].span.periods = 30;
  laps[0].span.throttled = 30;
  laps[1].span.periods = 10;
  EXPECT_DOUBLE_EQ(Pool(laps)["throttled"], 0.75);
}

TEST(Pool, TheWorstLapTellsHowLateTrainersObeyed) {
  std::vector<Lap> laps = {OneSecond({}, 1), OneSecond({}, 1), OneSecond({}, 1)};
  EXPECT_FALSE(Pool(laps).contains("acknowledged"));
  laps[0].span.acknowledged = 0.002;
  laps[2].span.acknowledged = 0.001;
  EXPECT_EQ(Pool(laps)["acknowledged"], 0.002);
}

TEST(Heaps, TheLastHasWhatIsLeftOver) {
  const std::vector<Lap> laps(8, OneSecond({}, 1));
  std::vector<std::size_t> sizes;
  for (const auto& heap : Heaps(laps, 3)) sizes.push_back(heap.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 5}));
  EXPECT_EQ(Heaps(laps, 9).size(), 1U);
  EXPECT_EQ(Heaps(laps, 1).size(), 8U);
  EXPECT_EQ(Heaps(laps, 3)[1].data(), laps.data() + 3);
}

TEST(ByLap, IsEachLapByWhatItCouldHaveBeen) {
  const std::vector<Lap> laps = {OneSecond({2ms}, 3), OneSecond({4ms}, 1)};
  const PolicyRounds rounds = ByLap(laps, std::vector<double>{4, 2});
  EXPECT_EQ(rounds.kept, (std::vector<double>{0.75, 0.5}));
  ASSERT_EQ(rounds.p99.size(), 2U);
  EXPECT_NEAR(rounds.p99[1] / rounds.p99[0], 2, 0.01);
}

}  // namespace
}  // namespace tandem::bench
