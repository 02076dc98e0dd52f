#include "bench/interleave.h"

#include <string>

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

class InterleaveTest : public testing::Test {
 protected:
  InterleaveTest() {
    context_.pace.rounds = 3;
    context_.say = [](std::string_view) {};
  }

  // Notes its turn, and fails from its `bad`th sample on.
  Side Noted(const std::string& name, int bad = 100, bool may_fail = false) {
    return {.name = name,
            .sample = [this, name, bad, count = 0]() mutable -> Result<Figures> {
              order_ += name;
              if (++count >= bad) return Fail(ErrorCode::kInternal, "{} broke", name);
              return Figures{{"p50", count}, {"rate", 10 * count}};
            },
            .may_fail = may_fail};
  }

  BenchContext context_;
  std::string order_;
};

TEST_F(InterleaveTest, SidesTakeTurnsBackAndForth) {
  const auto series = Interleave(context_, "test", {Noted("a"), Noted("b"), Noted("c")});
  ASSERT_TRUE(series);
  EXPECT_EQ(order_, "abccbaabc");
  EXPECT_EQ(series->at("b.p50").samples, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(series->at("c.rate").samples, (std::vector<double>{10, 20, 30}));
}

TEST_F(InterleaveTest, ASideThatMayFailIsGivenUpAndTheOthersGoOn) {
  const auto series = Interleave(context_, "test", {Noted("a"), Noted("b", 2, true)});
  ASSERT_TRUE(series);
  EXPECT_EQ(order_, "abbaa");
  EXPECT_EQ(series->at("b").not_run, "b broke");
  EXPECT_EQ(series->at("a.p50").samples.size(), 3U);
}

TEST_F(InterleaveTest, AFailureOfOurOwnEndsIt) {
  const auto series = Interleave(context_, "test", {Noted("a"), Noted("b", 2)});
  ASSERT_FALSE(series);
  EXPECT_EQ(series.error().message, "b broke");
}

TEST_F(InterleaveTest, AnInterruptionIsNoFailureOfASide) {
  std::atomic<bool> stop{false};
  context_.stop = &stop;
  Side side = Noted("a", 1, true);
  side.sample = [&stop]() -> Result<Figures> {
    stop = true;
    return Fail(ErrorCode::kInternal, "cut short");
  };
  const auto series = Interleave(context_, "test", {side});
  ASSERT_FALSE(series);
  EXPECT_EQ(series.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tandem::bench
