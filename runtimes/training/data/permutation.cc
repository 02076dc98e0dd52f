#include "runtimes/training/data/permutation.h"

#include <algorithm>
#include <bit>

#include "runtimes/training/data/counter_random.h"

namespace tandem::training {
namespace {

// With halves of fewer bits there are too few ways to order a handful of examples.
constexpr int kLeastHalfBits = 3;

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream)
    : size_(static_cast<std::uint64_t>(size)),
      half_bits_(std::max(kLeastHalfBits, (static_cast<int>(std::bit_width(size_)) + 1) / 2)) {
  const CounterRandom random(seed, stream);
  for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = random.At(i);
}

std::uint64_t Permutation::Encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (CounterRandom(key, right).At(0) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::int64_t Permutation::At(std::int64_t place) const {
  auto value = static_cast<std::uint64_t>(place);
  do {
    value = Encrypt(value);
  } while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace tandem::training
