#include "profiler/record_ring.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {

// A writer that can be stopped in the middle.
class RecordRingPeer {
 public:
  explicit RecordRingPeer(RecordRing& ring) : ring_(ring), ticket_(ring.next_.fetch_add(1)) {}
  bool Claim() { return (slot_ = ring_.Claim(ticket_)) != nullptr; }
  void Fill(const FlightRecord& record) { RecordRing::Fill(*slot_, record); }
  void Publish() { RecordRing::Publish(*slot_, ticket_); }

 private:
  RecordRing& ring_;
  const std::uint64_t ticket_;
  RecordRing::Slot* slot_ = nullptr;
};

namespace {

// All of its numbers follow from one.
FlightRecord Numbered(std::uint64_t number) {
  const auto value = static_cast<std::int64_t>(number);
  return {.time = value,
          .subject = number,
          .values = {value + 1, value + 2, value + 3, value + 4},
          .name = static_cast<std::uint32_t>(number),
          .count = static_cast<std::uint16_t>(number),
          .code = static_cast<std::uint8_t>(number),
          .kind = 1};
}

std::vector<std::uint64_t> Subjects(const RecordRing& ring) {
  std::vector<std::uint64_t> subjects;
  ring.ForEach([&](const FlightRecord& record) { subjects.push_back(record.subject); });
  return subjects;
}

TEST(RecordRing, KeepsTheLastInTheirOrder) {
  RecordRing ring(3);
  EXPECT_EQ(ring.capacity(), 4u) << "a power of two";
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{}));
  ring.Write(Numbered(1));
  ring.Write(Numbered(2));
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{1, 2}));
  for (std::uint64_t i = 3; i <= 11; ++i) ring.Write(Numbered(i));
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{8, 9, 10, 11}));
  EXPECT_EQ(ring.written(), 11u);
  EXPECT_EQ(ring.lost(), 0u);
  ring.ForEach([](const FlightRecord& record) { EXPECT_EQ(record, Numbered(record.subject)); });
}

TEST(RecordRing, GivesOnlyTheNewestWhenThatIsAsked) {
  RecordRing ring(4);
  EXPECT_TRUE(ring.Last(2).empty());
  for (std::uint64_t i = 1; i <= 3; ++i) ring.Write(Numbered(i));
  EXPECT_FALSE(ring.overwritten());
  ASSERT_EQ(ring.Last(2).size(), 2u);
  EXPECT_EQ(ring.Last(2)[0].subject, 2u);
  for (std::uint64_t i = 4; i <= 11; ++i) ring.Write(Numbered(i));
  EXPECT_TRUE(ring.overwritten());
  EXPECT_EQ(ring.Last(2)[1].subject, 11u);
  EXPECT_EQ(ring.Last(100).size(), 4u);
  EXPECT_TRUE(ring.Last(0).empty());
}

TEST(RecordRing, OfNothingKeepsNothing) {
  RecordRing ring(0);
  ring.Write(Numbered(1));
  EXPECT_EQ(ring.capacity(), 0u);
  EXPECT_EQ(ring.written(), 0u);
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{}));
}

TEST(RecordRing, WhatIsHalfWrittenIsPassedOver) {
  RecordRing ring(4);
  ring.Write(Numbered(1));
  RecordRingPeer slow(ring);
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{1})) << "before it has begun";
  ASSERT_TRUE(slow.Claim());
  ring.Write(Numbered(3));
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{1, 3}));
  slow.Fill(Numbered(2));
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{1, 3})) << "until it says that it is done";
  slow.Publish();
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(RecordRing, ARecordIsLostWhenItsSlotIsStillBeingWritten) {
  RecordRing ring(2);
  RecordRingPeer slow(ring);
  ASSERT_TRUE(slow.Claim());
  ring.Write(Numbered(2));
  ring.Write(Numbered(3));  // The slot of the slow one.
  EXPECT_EQ(ring.lost(), 1u);
  slow.Fill(Numbered(1));
  slow.Publish();
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{2})) << "what the slow one wrote is of the round before";
  ring.Write(Numbered(4));
  ring.Write(Numbered(5));
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{4, 5}));
}

TEST(RecordRing, AWriterThatSleptForARoundDoesNotOverwriteWhatIsNewer) {
  RecordRing ring(2);
  RecordRingPeer slow(ring);
  for (std::uint64_t i = 1; i <= 4; ++i) ring.Write(Numbered(i));
  EXPECT_FALSE(slow.Claim());
  EXPECT_EQ(Subjects(ring), (std::vector<std::uint64_t>{3, 4}));
}

TEST(RecordRing, ManyThreadsNeverShowAMixtureOfTwoRecords) {
  constexpr std::uint64_t kEach = 20'000;
  constexpr std::uint64_t kWriters = 4;
  RecordRing ring(16);  // Small, so that slots are overwritten all the time.
  std::atomic<std::uint64_t> finished{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (std::uint64_t i = 0; i < kEach; ++i) ring.Write(Numbered(writer * kEach + i));
      finished.fetch_add(1);
    });
  }
  const auto look = [&] {
    std::size_t seen = 0;
    ring.ForEach([&](const FlightRecord& record) {
      EXPECT_EQ(record, Numbered(record.subject));
      ++seen;
    });
    return seen;
  };
  while (finished.load() < kWriters) EXPECT_LE(look(), ring.capacity());
  threads.clear();
  EXPECT_GT(look(), 0u);
  EXPECT_EQ(ring.written(), kWriters * kEach);
}

}  // namespace
}  // namespace tandem
