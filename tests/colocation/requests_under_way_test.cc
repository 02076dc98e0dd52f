#include "colocation/requests_under_way.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr ModelBit kA = 1;
constexpr ModelBit kB = 63;
constexpr ModelSet kBoth = SetOf(kA) | SetOf(kB);

TEST(RequestsUnderWay, TellsWhichModelsHaveSome) {
  RequestsUnderWay requests;
  EXPECT_EQ(requests.Among(kEveryModel), 0U);
  requests.Began(kA);
  requests.Began(kB);
  requests.Began(kB);
  EXPECT_EQ(requests.Among(kEveryModel), kBoth);
  EXPECT_EQ(requests.Among(SetOf(kB) | SetOf(7)), SetOf(kB)) << "only those that were asked for";
  EXPECT_EQ(requests.Among(0), 0U);
  requests.Ended(kA);
  requests.Ended(kB);
  EXPECT_EQ(requests.Among(kBoth), SetOf(kB)) << "one is left";
  requests.Ended(kB);
  EXPECT_EQ(requests.Among(kBoth), 0U);
}

TEST(RequestsUnderWay, OneOfAnyModelIsOneOfEach) {
  RequestsUnderWay requests;
  requests.Began(kAnyModel);
  EXPECT_EQ(requests.Among(kBoth), kBoth);
  EXPECT_EQ(requests.Among(kEveryModel), kEveryModel);
  requests.Ended(kAnyModel);
  EXPECT_EQ(requests.Among(kEveryModel), 0U);
}

TEST(RequestsUnderWay, TellsTheFirstAndTheLastOfAllAndOfEachModel) {
  RequestsUnderWay requests;
  const auto is = [](RequestsUnderWay::Edge edge, bool of_all, bool of_model) {
    return edge.of_all == of_all && edge.of_model == of_model;
  };
  EXPECT_TRUE(is(requests.Began(kA), true, true));
  EXPECT_TRUE(is(requests.Began(kA), false, false));
  EXPECT_TRUE(is(requests.Began(kB), false, true));
  EXPECT_EQ(requests.pending(), 3);
  EXPECT_TRUE(is(requests.Ended(kA), false, false));
  EXPECT_TRUE(is(requests.Ended(kA), false, true));
  EXPECT_TRUE(is(requests.Ended(kB), true, true));
  EXPECT_EQ(requests.pending(), 0);
  EXPECT_EQ(requests.answered(), 3U);
}

TEST(RequestsUnderWay, LosesNoneOfManyThreads) {
  constexpr int kEach = 20'000;
  RequestsUnderWay requests;
  std::atomic<int> firsts{0};
  std::atomic<int> lasts{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) {
        firsts += requests.Began(kA).of_model ? 1 : 0;
        lasts += requests.Ended(kA).of_model ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(requests.Among(kEveryModel), 0U);
  EXPECT_EQ(requests.answered(), 4U * kEach);
  EXPECT_GE(firsts, 1);
  EXPECT_EQ(firsts, lasts) << "whoever is woken by one is woken by the other";
}

}  // namespace
}  // namespace tandem
