#include "api/wire/slo_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(SloHeader, IsANumberOfMilliseconds) {
  EXPECT_EQ(ParseSloHeader("25"), 25ms);
  EXPECT_EQ(ParseSloHeader("1.5"), 1500us);
  EXPECT_EQ(ParseSloHeader("86400000"), 24h);
}

TEST(SloHeader, AnythingElseIsRefusedAndNamed) {
  for (const char* bad : {"", "0", "-1", "abc", "5ms", "nan", "inf", "1e300", " 5", "86400001"}) {
    const auto parsed = ParseSloHeader(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument) << bad;
    EXPECT_THAT(parsed.error().message, HasSubstr("x-slo-ms")) << bad;
  }
}

}  // namespace
}  // namespace tandem
