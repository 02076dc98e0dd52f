#pragma once

#include <cstdint>

namespace tandem::training {

// Random numbers by their place: the n-th is computed from seed and n alone, so that nothing has to be remembered to go
// on from anywhere, and the same on every machine. Mixes as SplitMix64 does (Steele, Lea, Flood: "Fast splittable
// pseudorandom number generators", 2014). Not for secrets.
class CounterRandom {
 public:
  // `stream` keeps apart what one seed is used for.
  constexpr CounterRandom(std::uint64_t seed, std::uint64_t stream) : key_(Mix(Mix(seed + kStep) ^ (stream * kStep))) {}

  [[nodiscard]] constexpr std::uint64_t At(std::uint64_t n) const { return Mix(key_ + (n + 1) * kStep); }
  // In [0, 1), of 24 bits: exact in a float.
  [[nodiscard]] constexpr float UnitAt(std::uint64_t n) const { return static_cast<float>(At(n) >> 40) * 0x1p-24F; }
  // In [0, bound); even enough for bounds far below 2^64.
  [[nodiscard]] constexpr std::uint64_t BelowAt(std::uint64_t n, std::uint64_t bound) const { return At(n) % bound; }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

  static constexpr std::uint64_t Mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t key_;
};

}  // namespace tandem::training
