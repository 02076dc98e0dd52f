#include "bench/better_policies.h"

#include <algorithm>
#include <cstddef>

#include "bench/report.h"

namespace tandem::bench {
namespace {

bool BetterInMost(const PolicyRounds& other, const PolicyRounds& first) {
  std::size_t rounds = 0;
  for (std::size_t i = 0; i < first.p99.size(); ++i) {
    if (other.p99.at(i) < first.p99[i] && other.kept.at(i) > first.kept.at(i)) ++rounds;
  }
  return 2 * rounds > first.p99.size();
}

bool BetterMedians(const PolicyRounds& other, const PolicyRounds& first) {
  return Median(other.p99) < Median(first.p99) && Median(other.kept) > Median(first.kept);
}

template <typename Better>
int CountOthers(std::span<const PolicyRounds> policies, Better better) {
  return static_cast<int>(
      std::ranges::count_if(policies, [&](const PolicyRounds& other) { return better(other, policies.front()); }));
}

}  // namespace

int BetterByRounds(std::span<const PolicyRounds> policies) {
  return CountOthers(policies, BetterInMost);
}

int BetterByMedians(std::span<const PolicyRounds> policies) {
  return CountOthers(policies, BetterMedians);
}

}  // namespace tandem::bench
