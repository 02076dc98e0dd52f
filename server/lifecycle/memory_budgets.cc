#include "server/lifecycle/memory_budgets.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

constexpr std::uint64_t kBodyParts = 4;
constexpr std::uint64_t kRestAnswerParts = 2;
constexpr std::uint64_t kBufferParts = 4;
constexpr std::uint64_t kRequestParts = 2;
constexpr std::uint64_t kGrpcAnswerParts = 3;
constexpr std::uint64_t kOneRequestParts = 2;

std::uint64_t Reserve(const MemoryAsked& asked) {
  const auto threads = static_cast<std::uint64_t>(std::max(asked.threads, 1));
  const std::uint64_t constant = 160 * kMiB + threads * 8 * kMiB;
  // A machine too small for this is not bounded either (BoundProcessMemory), and must still serve something.
  return std::min(constant, asked.bound / 4) + std::min(asked.bound / 8, 2 * kGiB);
}

}  // namespace

MemoryBudgets ShareMemory(const MemoryAsked& asked) {
  MemoryBudgets budgets{.reserve = Reserve(asked)};
  const std::uint64_t shared = asked.bound - budgets.reserve;
  std::uint64_t front_ends = std::min(asked.bound / 10 * 3, 4 * kGiB);
  if (asked.max_activation_bytes > 0) {
    const std::uint64_t left = shared - std::min(shared, asked.max_activation_bytes);
    front_ends = std::clamp(left, std::min(asked.bound / 16, front_ends), 8 * kGiB);
  }
  budgets.arena = shared - front_ends;
  if (asked.max_activation_bytes > 0) budgets.arena = std::min(budgets.arena, asked.max_activation_bytes);

  const std::uint64_t rest_parts = kBodyParts + kRestAnswerParts;
  const std::uint64_t grpc_parts = kBufferParts + kRequestParts + kGrpcAnswerParts;
  const std::uint64_t parts = (asked.rest ? rest_parts : 0) + (asked.grpc ? grpc_parts : 0);
  const std::uint64_t part = front_ends / std::max<std::uint64_t>(parts, 1);
  if (asked.rest) {
    budgets.rest_bodies = kBodyParts * part;
    budgets.rest_answers = kRestAnswerParts * part;
  }
  if (asked.grpc) {
    budgets.grpc_buffers = kBufferParts * part;
    budgets.grpc_requests = kRequestParts * part;
    budgets.grpc_answers = kGrpcAnswerParts * part;
  }
  budgets.max_request = std::min(asked.max_request_bytes, kOneRequestParts * part);
  return budgets;
}

}  // namespace tandem
