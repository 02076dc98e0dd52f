#include "server/rest/base64.h"

#include <string>

#include <gtest/gtest.h>

namespace tandem::rest {
namespace {

TEST(Base64, DecodesEveryLength) {
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("Zg=="), "f");
  EXPECT_EQ(DecodeBase64("Zm8="), "fo");
  EXPECT_EQ(DecodeBase64("Zm9v"), "foo");
  EXPECT_EQ(DecodeBase64("Zm9vYg=="), "foob");
  EXPECT_EQ(DecodeBase64("Zm9vYmE="), "fooba");
  EXPECT_EQ(DecodeBase64("Zm9vYmFy"), "foobar");
}

TEST(Base64, DecodesEveryLetter) {
  const auto bytes = DecodeBase64("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 48u);
  for (unsigned value = 0; value < 64; ++value) {
    unsigned bits = 0;
    for (unsigned bit = 0; bit < 6; ++bit) {
      const unsigned at = value * 6 + bit;
      bits = bits << 1 | (static_cast<unsigned char>((*bytes)[at / 8]) >> (7 - at % 8) & 1);
    }
    EXPECT_EQ(bits, value);
  }
}

TEST(Base64, RefusesEverythingElse) {
  for (const std::string text : {"Z", "Zg", "Zg=", "=", "====", "Z===", "Zg==Zg==", "Zm9v\n", " Zm9v", "Zm9v ", "Zm-v",
                                 "Zm_v", "Zm=v", "Z=9v", "Zm9\xff", "Zm9vZg= ", "Zm9vZ=g="}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
  EXPECT_FALSE(DecodeBase64(std::string("Zm\0v", 4)));
}

}  // namespace
}  // namespace tandem::rest
