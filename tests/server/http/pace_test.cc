#include "server/http/pace.h"

#include <gtest/gtest.h>

namespace tandem::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRate = 1000;
const MonotonicTime kStart{};

TEST(Pace, IsNotJudgedBeforeAWindowHasPassed) {
  Pace pace;
  pace.Begin(kStart, 0);
  EXPECT_FALSE(pace.TooSlow(kStart + 10s, 0, 10s, kRate));
  EXPECT_TRUE(pace.TooSlow(kStart + 11s, 0, 10s, kRate));
}

TEST(Pace, AFastStartPaysForNoLaterWindow) {
  Pace pace;
  pace.Begin(kStart, 500);
  EXPECT_FALSE(pace.TooSlow(kStart + 11s, 1'000'000'000, 10s, kRate));
  EXPECT_TRUE(pace.TooSlow(kStart + 22s, 1'000'010'000, 10s, kRate));
}

TEST(Pace, ASteadyOneIsNeverTooSlow) {
  Pace pace;
  pace.Begin(kStart, 0);
  for (int i = 1; i < 100; ++i) EXPECT_FALSE(pace.TooSlow(kStart + i * 1s, i * kRate, 10s, kRate));
}

}  // namespace
}  // namespace tandem::http
