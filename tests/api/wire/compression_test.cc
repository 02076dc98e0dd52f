#include "api/wire/compression.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api/wire/mutation.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> AsBytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string AsText(const Result<Bytes>& bytes) {
  if (!bytes) return "error: " + bytes.error().message;
  return {reinterpret_cast<const char*>(bytes->view.data()), bytes->size()};
}

std::string Pack(const std::string& text, std::string_view encoding) {
  const std::span<const std::byte> parts[] = {AsBytes(text)};
  return Deflate(parts, encoding).value();
}

std::string PackRaw(const std::string& text) {
  std::string packed = Pack(text, "deflate");
  return packed.substr(2, packed.size() - 6);  // Without zlib's header and checksum.
}

std::string Noise(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST(Compression, UnpacksWhatItPacked) {
  for (const std::string& text : {std::string(), std::string("short"), std::string(1 << 20, 'a'), Noise(300'000)}) {
    for (const std::string_view encoding : {"gzip", "deflate"}) {
      EXPECT_TRUE(AsText(Inflate(AsBytes(Pack(text, encoding)), encoding, 1 << 20)) == text) << text.size();
    }
  }
}

TEST(Compression, PacksPartsAsOneStream) {
  const std::string first = "{\"json\":1}";
  const std::string second = Noise(1000);
  const std::string nothing;
  const std::span<const std::byte> parts[] = {AsBytes(first), AsBytes(nothing), AsBytes(second)};
  const auto packed = Deflate(parts, "gzip");
  ASSERT_TRUE(packed);
  EXPECT_EQ(AsText(Inflate(AsBytes(*packed), "gzip", 5000)), first + second);
}

TEST(Compression, TakesRawDeflateAsWell) {
  EXPECT_EQ(AsText(Inflate(AsBytes(PackRaw("hello hello hello")), "deflate", 100)), "hello hello hello");
}

TEST(Compression, RefusesABombAtTheLimit) {
  const std::string bomb = Pack(std::string(100 << 20, '\0'), "gzip");
  EXPECT_LT(bomb.size(), std::size_t{1} << 20);
  const auto result = Inflate(AsBytes(bomb), "gzip", 1 << 20);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(result.error().message, HasSubstr("1048576"));
}

TEST(Compression, TheLimitItselfIsAllowed) {
  const std::string packed = Pack(std::string(1000, 'a'), "deflate");
  EXPECT_TRUE(Inflate(AsBytes(packed), "deflate", 1000));
  EXPECT_EQ(Inflate(AsBytes(packed), "deflate", 999).error().code, ErrorCode::kTooLarge);
}

TEST(Compression, RefusesCutCorruptAndFollowedStreams) {
  for (const std::string_view encoding : {"gzip", "deflate"}) {
    const std::string packed = Pack(Noise(5000), encoding);
    for (const std::size_t keep :
         {std::size_t{0}, std::size_t{1}, std::size_t{5}, packed.size() / 2, packed.size() - 1}) {
      const auto cut = Inflate(AsBytes(packed.substr(0, keep)), encoding, 10'000);
      ASSERT_FALSE(cut) << keep;
      EXPECT_EQ(cut.error().code, ErrorCode::kInvalidArgument);
    }
    EXPECT_THAT(AsText(Inflate(AsBytes(packed + "xyz"), encoding, 10'000)), HasSubstr("3 surplus bytes"));
    std::string corrupt = packed;
    corrupt[corrupt.size() - 2] ^= 0x55;
    const auto result = Inflate(AsBytes(corrupt), encoding, 10'000);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(Inflate(AsBytes("{\"inputs\":[]}"), "gzip", 1000));
}

TEST(Compression, NoMutationOfAStreamUnpacksBeyondTheLimit) {
  const std::string packed[] = {Pack("some text, some text", "gzip"), Pack("some text, some text", "deflate")};
  std::mt19937 random(3);
  for (int i = 0; i < 5'000; ++i) {
    const auto result = Inflate(AsBytes(Mutate(packed[i % 2], random)), i % 2 == 0 ? "gzip" : "deflate", 1000);
    ASSERT_TRUE(!result || result->size() <= 1000U);
  }
}

TEST(Compression, WhatIsUnpackedCountsInTheBudgetWhileItLives) {
  const std::string packed = Pack(std::string(1'000'000, 'x'), "gzip");
  const auto budget = std::make_shared<ByteBudget>(10'000'000);
  auto unpacked = Inflate(AsBytes(packed), "gzip", 2'000'000, budget);
  ASSERT_TRUE(unpacked);
  EXPECT_GE(budget->used(), 1'000'000U);
  unpacked->owner.reset();
  EXPECT_EQ(budget->used(), 0U);
  const auto small = std::make_shared<ByteBudget>(900'000);
  const auto refused = Inflate(AsBytes(packed), "gzip", 2'000'000, small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(small->used(), 0U);
}

TEST(Compression, RefusesEncodingsThatItDoesNotKnow) {
  const auto result = Inflate({}, "br", 10);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("'br'"));
  EXPECT_FALSE(IsKnownEncoding("br"));
  EXPECT_TRUE(IsKnownEncoding("gzip"));
}

}  // namespace
}  // namespace tandem
