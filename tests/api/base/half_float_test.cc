#include "api/base/half_float.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(HalfFloat, RoundsToTheNearestAndSurvivesTheWayBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    EXPECT_TRUE(std::isnan(FromFp16(half)) || ToFp16(FromFp16(half)) == half) << half;
    EXPECT_TRUE(std::isnan(FromBf16(half)) || ToBf16(FromBf16(half)) == half) << half;
  }
  EXPECT_EQ(ToFp16(1.0F + 0x1p-11F), 0x3c00);  // A tie: to the even one.
  EXPECT_EQ(ToFp16(1.0F + 0x1.8p-10F), 0x3c02);
  EXPECT_EQ(ToBf16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(ToBf16(1.0F + 0x1.8p-7F), 0x3f82);
  EXPECT_TRUE(std::isnan(FromBf16(ToBf16(std::nanf("")))));
}

}  // namespace
}  // namespace tandem
