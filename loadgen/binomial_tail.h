#pragma once

#include <cstdint>

namespace tandem::loadgen {

// How likely it is that of `count` independent requests, each a miss with probability `share`, so many miss. As natural
// logarithms, since the interesting ones lie below what a double can hold. Pure; 0 < share < 1, misses <= count < 2^53.
// Right to ten digits; the time grows with the standard deviation of the misses: 10 million take some 0.1 ms.

// Exactly `misses`.
[[nodiscard]] double LogProbabilityOf(std::uint64_t count, std::uint64_t misses, double share);
// `misses` or fewer.
[[nodiscard]] double LogProbabilityOfAtMost(std::uint64_t count, std::uint64_t misses, double share);
// `misses` or more.
[[nodiscard]] double LogProbabilityOfAtLeast(std::uint64_t count, std::uint64_t misses, double share);

}  // namespace tandem::loadgen
