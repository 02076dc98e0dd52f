#include "api/base/byte_text.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(ByteText, ReadsNumbersWithUnits) {
  EXPECT_EQ(ParseByteText("2GB"), 2e9);
  EXPECT_EQ(ParseByteText("1.5 GiB"), 1.5 * (1 << 30));
  EXPECT_EQ(ParseByteText("40MB"), 40e6);
  EXPECT_EQ(ParseByteText("7B"), 7);
  for (const char* const wrong : {"", "GB", "2", "2 G", "2gb", "two GB", "2GB ", "2  GB", "1e3GB"}) {
    EXPECT_FALSE(ParseByteText(wrong)) << wrong;
  }
}

TEST(ByteText, WritesThemSoThatAPersonCanReadThem) {
  EXPECT_EQ(ByteText(0), "0 B");
  EXPECT_EQ(ByteText(1023), "1023 B");
  EXPECT_EQ(ByteText(1536), "1.5 KiB");
  EXPECT_EQ(ByteText(std::uint64_t{310} << 20), "310.0 MiB");
  EXPECT_EQ(ByteText((std::uint64_t{1} << 30) - 1), "1.0 GiB");
  EXPECT_EQ(ByteText(std::uint64_t{19} << 30), "19.0 GiB");
}

}  // namespace
}  // namespace tandem
