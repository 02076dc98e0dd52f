#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/better_policies.h"
#include "bench/interleave.h"
#include "bench/training_server.h"
#include "loadgen/latency_histogram.h"

namespace tandem::bench {

// What one side did in one lap; in a lap each side has its turn once.
struct Lap {
  loadgen::LatencyHistogram latency;  // Of requests; of none where nobody asked.
  TrainingSpan span;
};

// The order of the sides in each lap: drawn anew for each, so that no side always follows the same other, and the same
// for the same seed. Pure.
[[nodiscard]] std::vector<std::vector<std::size_t>> DrawOrders(std::size_t sides, std::size_t laps, std::uint64_t seed);

// Several laps of one side taken as one: latencies in one heap, counts over all of the time. Figures: p50 and p99
// (seconds; 0 where nobody asked), rate (steps a second of all jobs), cores (that the server used), throttled (share
// of periods), and acknowledged, that of the worst lap, where a trainer was told anything. Pure; of one lap at least.
[[nodiscard]] Figures Pool(std::span<const Lap> laps);

// Laps in heaps of `size`, one after the other; those that are left over go to the last heap. Pure; `size` is at
// least 1.
[[nodiscard]] std::vector<std::span<const Lap>> Heaps(std::span<const Lap> laps, std::size_t size);

// One policy lap by lap: its p99, and its rate of training by `whole`, which is all that it could be in that lap.
[[nodiscard]] PolicyRounds ByLap(std::span<const Lap> laps, std::span<const double> whole);

}  // namespace tandem::bench
