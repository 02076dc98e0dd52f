#pragma once

#include <array>
#include <cstdint>

namespace tandem::training {

// A random order of the numbers below `size`, in no memory: the number at any place is computed from the seed. It is a
// cipher of few bits (Feistel's network over a power of four that holds `size`), walked until it lands below `size`.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream);

  // Different for different places; both in [0, size).
  [[nodiscard]] std::int64_t At(std::int64_t place) const;
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(size_); }

 private:
  [[nodiscard]] std::uint64_t Encrypt(std::uint64_t value) const;

  // Constant after construction.
  std::uint64_t size_;
  int half_bits_;
  std::array<std::uint64_t, 8> keys_;
};

}  // namespace tandem::training
