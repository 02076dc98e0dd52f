#include "server/grpc/header_guard.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace tandem::grpc_front {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint8_t kData = 0, kHeaders = 1, kSettings = 4, kContinuation = 9;
constexpr std::uint8_t kEndHeaders = 4;

std::string Frame(std::uint8_t type, std::uint8_t flags, std::size_t size) {
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(size >> shift & 0xFF);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  frame += std::string("\0\0\0\1", 4);
  return frame + std::string(size, '\xFF');
}

// Sent in pieces of that size.
bool Passes(std::string_view bytes, std::size_t piece) {
  HeaderGuard guard;
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, piece);
    if (!guard.Follow(std::as_bytes(std::span(part)))) return false;
    bytes.remove_prefix(part.size());
  }
  return true;
}

bool Passes(const std::string& frames) {
  const std::string bytes = std::string(kPreface) + Frame(kSettings, 0, 18) + frames;
  const bool whole = Passes(bytes, bytes.size());
  for (const std::size_t piece : {1, 7, 9, 16'384}) {
    EXPECT_EQ(Passes(bytes, piece), whole) << "in pieces of " << piece;
  }
  return whole;
}

TEST(HeaderGuard, LetsUsualCallsPassForEver) {
  std::string calls;
  for (int i = 0; i < 100; ++i) {
    calls += Frame(kHeaders, kEndHeaders, 3000) + Frame(kData, 0, 16'384) + Frame(kData, 1, 0);
  }
  EXPECT_TRUE(Passes(calls));
}

TEST(HeaderGuard, CountsABlockOverItsFrames) {
  const std::string begin = Frame(kHeaders, 0, 16'384);
  EXPECT_TRUE(Passes(begin + Frame(kContinuation, kEndHeaders, 16'384) + Frame(kHeaders, kEndHeaders, 16'384)));
  EXPECT_FALSE(Passes(begin + Frame(kContinuation, 0, 16'384) + Frame(kContinuation, kEndHeaders, 1)));
  EXPECT_FALSE(Passes(Frame(kHeaders, kEndHeaders, kMaxHeaderBlock + 1)));
}

TEST(HeaderGuard, BoundsEmptyContinuations) {
  std::string frames = Frame(kHeaders, 0, 10);
  for (int i = 0; i < 100; ++i) frames += Frame(kContinuation, 0, 0);
  EXPECT_FALSE(Passes(frames));
}

TEST(HeaderGuard, LeavesDataOfAnySizeAlone) {
  EXPECT_TRUE(Passes(Frame(kData, 0, (1 << 24) - 1) + Frame(kHeaders, kEndHeaders, 100)));
}

TEST(HeaderGuard, SaysNoBeforeTheBlockHasCome) {
  HeaderGuard guard;
  const std::string bytes = std::string(kPreface) + Frame(kHeaders, 0, 1 << 20).substr(0, 9);
  EXPECT_FALSE(guard.Follow(std::as_bytes(std::span(bytes))));
}

}  // namespace
}  // namespace tandem::grpc_front
