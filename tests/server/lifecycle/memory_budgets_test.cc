#include "server/lifecycle/memory_budgets.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::uint64_t Sum(const MemoryBudgets& b) {
  return b.arena + b.rest_bodies + b.rest_answers + b.grpc_buffers + b.grpc_requests + b.grpc_answers + b.reserve;
}

// A machine of `memory` whose operator has left everything as it is.
MemoryAsked Machine(std::uint64_t memory) {
  return {.bound = memory / 10 * 9, .threads = 2, .max_request_bytes = 256 * kMiB};
}

TEST(MemoryBudgets, StayWithinTheBoundWhateverIsAsked) {
  for (const std::uint64_t memory : {256 * kMiB, kGiB, 2 * kGiB, 4 * kGiB, 24 * kGiB, 1024 * kGiB}) {
    for (const std::uint64_t arena : {std::uint64_t{0}, std::uint64_t{1}, memory / 8, memory, ~std::uint64_t{0}}) {
      for (const auto& [rest, grpc] : {std::pair{true, true}, {true, false}, {false, true}}) {
        for (const int threads : {0, 2, 1024}) {
          MemoryAsked asked = Machine(memory);
          asked.max_activation_bytes = arena;
          asked.rest = rest;
          asked.grpc = grpc;
          asked.threads = threads;
          const MemoryBudgets budgets = ShareMemory(asked);
          EXPECT_LE(Sum(budgets), asked.bound) << memory << ' ' << arena;
          EXPECT_GE(budgets.reserve, asked.bound / 8 < 2 * kGiB ? asked.bound / 8 : 2 * kGiB);
          EXPECT_GE(budgets.max_request, kMiB) << memory << ' ' << arena;
          EXPECT_EQ(budgets.rest_bodies > 0, rest);
          EXPECT_EQ(budgets.grpc_buffers > 0, grpc);
        }
      }
    }
  }
}

TEST(MemoryBudgets, OneRequestAlwaysFits) {
  for (const std::uint64_t memory : {kGiB, 2 * kGiB, 4 * kGiB, 24 * kGiB}) {
    MemoryAsked asked = Machine(memory);
    asked.max_request_bytes = 2 * kGiB;
    const MemoryBudgets budgets = ShareMemory(asked);
    EXPECT_LE(2 * budgets.max_request, budgets.rest_bodies);  // A body that grows is there twice.
    EXPECT_LE(budgets.max_request, budgets.rest_answers);
    EXPECT_LE(budgets.max_request, budgets.grpc_requests);
    EXPECT_LE(budgets.max_request, budgets.grpc_answers / 8 * 7);  // The rest is for small ones.
    EXPECT_LE(2 * budgets.max_request, budgets.grpc_buffers);      // Calls are cancelled long before the quota is full.
  }
}

TEST(MemoryBudgets, RequestsAreAsLargeAsAskedForWhereThereIsRoom) {
  EXPECT_EQ(ShareMemory(Machine(8 * kGiB)).max_request, 256 * kMiB);
  EXPECT_LT(ShareMemory(Machine(2 * kGiB)).max_request, 128 * kMiB);
  // Runs that ask for little leave it to the requests.
  MemoryAsked asked = Machine(4 * kGiB);
  asked.max_activation_bytes = kGiB;
  EXPECT_EQ(ShareMemory(asked).max_request, 256 * kMiB);
}

TEST(MemoryBudgets, TheArenaHasWhatIsLeftOrWhatIsAskedFor) {
  MemoryAsked asked = Machine(24 * kGiB);
  EXPECT_GE(ShareMemory(asked).arena, 15 * kGiB);
  asked.max_activation_bytes = 100 * kMiB;
  EXPECT_EQ(ShareMemory(asked).arena, 100 * kMiB);
  asked.max_activation_bytes = 18 * kGiB;
  EXPECT_GE(ShareMemory(asked).arena, 17 * kGiB);
  EXPECT_LE(ShareMemory(asked).arena, 18 * kGiB);
}

TEST(MemoryBudgets, AFrontEndThatIsOffLeavesItsShare) {
  MemoryAsked asked = Machine(4 * kGiB);
  asked.grpc = false;
  EXPECT_GT(ShareMemory(asked).rest_bodies, 2 * ShareMemory(Machine(4 * kGiB)).rest_bodies);
  EXPECT_GT(ShareMemory(asked).rest_answers, 2 * ShareMemory(Machine(4 * kGiB)).rest_answers);
}

}  // namespace
}  // namespace tandem
