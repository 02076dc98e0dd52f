#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "colocation/servable.h"

namespace tandem {

// What a batching decision may depend on: one model's waiting requests, most urgent first, as far as they can share a
// run with the first.
struct BatchSnapshot {
  const BatchSettings& settings;
  std::span<const std::int64_t> sizes;      // Elements of each request. Not empty.
  std::chrono::nanoseconds oldest_wait{0};  // How long the longest waiting of them has been queued.
  // The time that each has left, max where it has no deadline; empty: none has one.
  std::span<const std::chrono::nanoseconds> left;
  // What the first one, two, … of them take together at most, never less for more of them; empty: not known.
  std::span<const std::chrono::nanoseconds> runs;
};

struct BatchDecision {
  std::size_t take = 0;              // Run the first `take` requests now; 0: wait.
  std::chrono::nanoseconds wait{0};  // When take is 0: decide again after this long at the latest.
};

// Work-conserving unless the configuration asks for a delay: takes as many requests as fit, and as many of these as can
// be run together in time for each of them, but for those that would be late alone. With a delay, waits for a preferred
// size (or a full batch) until the oldest request has waited that long, but never so long that a deadline would be
// missed for it. Same snapshot, same decision.
[[nodiscard]] BatchDecision ChooseBatch(const BatchSnapshot& snapshot);

}  // namespace tandem
