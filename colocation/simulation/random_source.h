#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tandem::simulation {

// Numbers that look random and are the same for the same seed, on every machine. Used by one thread.
class RandomSource {
 public:
  // Sources of one seed and different streams have nothing to do with one another.
  RandomSource(std::uint64_t seed, std::uint64_t stream) : state_(Mixed(seed) ^ Mixed(~stream)) {}

  // Above 0, at most 1.
  [[nodiscard]] double Uniform() { return static_cast<double>((Next() >> 11) + 1) * 0x1.0p-53; }
  // Of mean 1.
  [[nodiscard]] double Exponential() { return -std::log(Uniform()); }
  // Of mean 0 and deviation 1.
  [[nodiscard]] double Normal() {
    const double radius = std::sqrt(2 * Exponential());
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  static std::uint64_t Mixed(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return Mixed(state_);
  }

  std::uint64_t state_;
};

}  // namespace tandem::simulation
