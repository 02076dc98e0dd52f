#include "server/http/body_buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

namespace tandem::http {
namespace {

void Append(BodyBuffer& buffer, std::string_view text) {
  while (!text.empty()) {
    const std::span<std::byte> room = buffer.Room(text.size());
    ASSERT_FALSE(room.empty());
    std::memcpy(room.data(), text.data(), room.size());
    buffer.Commit(room.size());
    text.remove_prefix(room.size());
  }
}

std::string Text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view.data()), bytes.view.size()};
}

TEST(BodyBuffer, KeepsTheChosenByteAlignedWhileItGrows) {
  for (const std::size_t json : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    BodyBuffer buffer(nullptr);
    buffer.Prepare(0, json);
    std::string sent;
    for (int i = 0; i < 5000; ++i) sent += static_cast<char>('a' + i % 26);
    for (std::size_t i = 0; i < sent.size(); i += 77) Append(buffer, std::string_view(sent).substr(i, 77));
    const Bytes body = buffer.Finish();
    EXPECT_EQ(Text(body), sent);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(body.view.data() + json) % kTensorAlignment, 0u) << json;
  }
}

TEST(BodyBuffer, ReservesLittleForAClientThatOnlyAnnounces) {
  const auto budget = std::make_shared<ByteBudget>(std::size_t{1} << 40);
  BodyBuffer buffer(budget);
  buffer.Prepare(std::size_t{200} << 20, 0);
  EXPECT_EQ(budget->used(), 0u);
  Append(buffer, "x");
  EXPECT_LE(budget->used(), 65u * 1024);
  Append(buffer, std::string(64 * 1024, 'x'));
  EXPECT_LE(budget->used(), 1025u * 1024);
}

TEST(BodyBuffer, ABodyThatComesInLargePiecesIsNotCopied) {
  constexpr std::size_t kBytes = 600'000;
  constexpr std::size_t kPiece = 40'000;
  BodyBuffer buffer(nullptr);
  buffer.Prepare(kBytes, 0);
  const std::span<std::byte> first = buffer.Room(kPiece, kPiece);
  ASSERT_EQ(first.size(), kPiece);
  buffer.Commit(kPiece);
  const std::span<std::byte> rest = buffer.Room(kBytes - kPiece);
  EXPECT_EQ(rest.data(), first.data() + kPiece);
  EXPECT_EQ(rest.size(), kBytes - kPiece);
}

TEST(BodyBuffer, AsksForNoMoreThanAnnounced) {
  const auto budget = std::make_shared<ByteBudget>(1000);
  BodyBuffer buffer(budget);
  buffer.Prepare(600, 0);
  Append(buffer, std::string(600, 'x'));
  EXPECT_EQ(budget->used(), 600 + kBodySlack);
}

TEST(BodyBuffer, BudgetComesBackWithTheLastHolder) {
  const auto budget = std::make_shared<ByteBudget>(10'000);
  Bytes kept;
  {
    BodyBuffer buffer(budget);
    buffer.Prepare(1000, 0);
    Append(buffer, std::string(1000, 'x'));
    kept = buffer.Finish().Part(10, 5);
  }
  EXPECT_EQ(budget->used(), 1000 + kBodySlack);
  kept = {};
  EXPECT_EQ(budget->used(), 0u);
}

TEST(BodyBuffer, GivesNoRoomBeyondTheBudgetAndLosesNothingOfIt) {
  const auto budget = std::make_shared<ByteBudget>(5000);
  {
    BodyBuffer first(budget);
    first.Prepare(4000, 0);
    Append(first, std::string(4000, 'x'));
    BodyBuffer second(budget);
    second.Prepare(4000, 0);
    EXPECT_TRUE(second.Room(1).empty());
    EXPECT_EQ(budget->used(), 4000 + kBodySlack);
  }
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace tandem::http
