#pragma once

#include <cstdint>

namespace tandem {

// What the budgets are made from.
struct MemoryAsked {
  std::uint64_t bound = 0;                 // What the process may have: ProcessMemoryBound().
  int threads = 1;                         // That one run uses; each has a stack.
  std::uint64_t max_activation_bytes = 0;  // 0: what is left.
  std::uint64_t max_request_bytes = 0;
  bool rest = true;
  bool grpc = true;
};

// How the process's memory is shared out. Strangers can fill every one of these at once, and gRPC does not survive an
// allocation that the bound refuses; so together with the reserve they never come to more than the bound:
//
//   bound  =  reserve  +  arena  +  front ends
//   reserve     8 MiB for the stack of each thread of a run and 160 MiB for the others, the libraries and the heap; and
//               an eighth of the bound, at most 2 GiB, for what nobody counts: an answer while it is packed, a message
//               while it is unpacked, what gRPC holds above its quota until it has cancelled enough, fragments
//   front ends  three tenths of the bound, at most 4 GiB; more, up to 8 GiB, where --max-activation-bytes leaves
//               it, and less, down to a sixteenth, where that asks for more
//   arena       the rest, or what --max-activation-bytes says where that is less
//
// Of the front ends' fifteen parts REST's bodies have 4 and its answers 2, gRPC's buffers 4, its parsed requests 2 and
// its answers 3; a front end that is off leaves its parts to the other. One request may be as large as two parts, and
// so fits when it is alone: a body that grows is there twice for a moment, gRPC was seen to cancel a lone call at three
// quarters of its quota, and an eighth of the answers' share is for small ones.
struct MemoryBudgets {
  std::uint64_t arena = 0;
  std::uint64_t rest_bodies = 0;
  std::uint64_t rest_answers = 0;
  std::uint64_t grpc_buffers = 0;
  std::uint64_t grpc_requests = 0;
  std::uint64_t grpc_answers = 0;
  std::uint64_t reserve = 0;
  std::uint64_t max_request = 0;  // Of what was asked for, as much as can be held.

  friend bool operator==(const MemoryBudgets&, const MemoryBudgets&) = default;
};

// Pure.
[[nodiscard]] MemoryBudgets ShareMemory(const MemoryAsked& asked);

}  // namespace tandem
