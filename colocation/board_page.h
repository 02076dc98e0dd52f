#pragma once

// What lies on the pages of a board. For the two sides of it alone: trainer_board.cc and board_gate.cc.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "colocation/trainer_board.h"

namespace tandem::board {

inline constexpr std::uint32_t kVersion = 6;

// Orders are one word, so that one load tells all: the permit in 2 bits, the threads in 8, and the rest counts orders,
// so that no two that follow one another are alike.
[[nodiscard]] constexpr Permit PermitOf(std::uint32_t orders) {
  const std::uint32_t permit = orders & 3U;
  return permit > 2 ? Permit::kHold : static_cast<Permit>(permit);
}
[[nodiscard]] constexpr int ThreadsOf(std::uint32_t orders) {
  return static_cast<int>((orders >> 2U) & 0xffU);
}
[[nodiscard]] constexpr std::uint32_t NextOrders(std::uint32_t before, Permit permit, int threads) {
  const std::uint32_t count = (before >> 10U) + 1;
  return (count << 10U) | (static_cast<std::uint32_t>(threads) << 2U) | static_cast<std::uint32_t>(permit);
}

// What a trainer writes when no iteration of it follows; nothing else is believed.
inline constexpr std::uint32_t kDone = 0x444f4e45;

// Turns are a word of their own: what is ordered in 2 bits, and the rest counts. It is never 0.
[[nodiscard]] constexpr Turn TurnOf(std::uint32_t word) {
  const std::uint32_t turn = word & 3U;
  return turn > 2 ? Turn::kWait : static_cast<Turn>(turn);
}
[[nodiscard]] constexpr std::uint32_t NextTurn(std::uint32_t before, Turn turn) {
  const std::uint32_t count = ((before >> 2U) + 1) & 0x3fff'ffffU;
  return ((count == 0 ? 1 : count) << 2U) | static_cast<std::uint32_t>(turn);
}

// The operator that runs is one word, too: its place and one in 16 bits, 0 when none does, and how many have begun.
struct Current {
  std::uint64_t begun = 0;
  std::optional<std::size_t> place;

  [[nodiscard]] static constexpr Current Of(std::uint64_t word) {
    const std::uint64_t place = word & 0xffffU;
    return {.begun = word >> 16U,
            .place = place == 0 || place > TrainerBoard::kOps ? std::nullopt : std::optional<std::size_t>(place - 1)};
  }
  [[nodiscard]] constexpr std::uint64_t word() const { return (begun << 16U) | (place ? *place + 1 : 0); }
};
static_assert(TrainerBoard::kOps < 0xffff);

// Written by the trainer.
struct Op {
  std::array<std::atomic<char>, TrainerBoard::kKindBytes> kind;
  std::array<std::atomic<char>, TrainerBoard::kNameBytes> name;
  std::atomic<std::uint64_t> count;
  std::atomic<std::uint64_t> total;    // Nanoseconds, as the times below.
  std::atomic<std::uint64_t> typical;  // 0: not known.
  std::atomic<std::uint64_t> bytes;
  std::atomic<double> flops;
};

// A sequence lock: `sequence` is odd while the others are written, and else twice the number of the record. The others
// are written with release and read with acquire, so that whoever sees a new one of them sees the odd number, too.
struct Record {
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::uint64_t> began;  // Of the monotonic clock, which all processes share.
  std::atomic<std::uint64_t> took;
  std::atomic<std::uint64_t> op;
};

}  // namespace tandem::board

namespace tandem {

// Each side writes to lines of its own.
struct TrainerBoard::Page {
  // Server.
  alignas(64) std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> orders;
  std::atomic<std::int64_t> ordered_at;
  std::atomic<std::uint32_t> turn;
  std::atomic<std::uint32_t> lane_answers;  // The last question about the lane that was answered.
  std::atomic<std::uint64_t> lane;          // Its bytes; 0: none.
  std::atomic<std::uint64_t> under_way;     // Models that have requests, of those that operators wait for: ModelSet.
  std::array<std::atomic<std::uint64_t>, kOps> gated;  // The models that an operator waits for: ModelSet.

  // Trainer.
  alignas(64) std::atomic<std::uint64_t> current;  // The operator that runs: board::Current.
  std::atomic<std::uint32_t> held;
  std::atomic<std::uint32_t> waits_by;   // The order of its turn by which it waits; 0: it does not.
  std::atomic<std::uint32_t> runs_by;    // That by which it began to run last.
  std::atomic<std::uint32_t> done;       // No iteration follows.
  std::atomic<std::uint32_t> lane_asks;  // Questions about the lane, counted.
  std::atomic<std::uint64_t> lane_needed;
  std::atomic<std::uint64_t> left_at;  // When it came to wait, in nanoseconds of the monotonic clock.
  std::atomic<std::uint64_t> began_at;
  std::atomic<std::uint64_t> waited;  // Under kLightOnly.
  std::atomic<std::uint32_t> op_count;
  std::atomic<std::uint64_t> records_written;
  std::array<std::atomic<std::uint64_t>, AcknowledgementTimes::kBuckets> acknowledged;
  std::atomic<std::uint64_t> acknowledged_sum;
  std::array<board::Op, kOps> ops;
  std::array<board::Record, kRecords> records;
};

}  // namespace tandem
