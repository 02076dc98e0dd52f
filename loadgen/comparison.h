#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::loadgen {

// For each repetition the order in which the sides run: each once, drawn anew every time, so that neither always comes
// first on a machine that grows warm. The same for the same seed, on every platform.
[[nodiscard]] std::vector<std::vector<std::size_t>> RunOrder(std::size_t sides, std::size_t repetitions,
                                                             std::uint64_t seed);

// What was measured of two sides in one repetition, close in time; all above 0. The sides may differ in number.
struct PairedSamples {
  std::vector<double> a, b;
};

struct ComparisonOptions {
  double confidence = 0.95;
  std::size_t resamples = 10'000;
  std::uint64_t seed = 1;
};

// With fewer repetitions nothing is said about chance.
inline constexpr std::size_t kLeastRepetitions = 3;

enum class Difference : std::uint8_t {
  kShown,              // The interval does not hold 1.
  kNotShown,           // It does. That is no proof that the sides are alike.
  kTooFewRepetitions,  // There is no interval.
};

// As in JSON: "shown", "not_shown", "too_few_repetitions".
[[nodiscard]] std::string_view DifferenceName(Difference difference);

struct RatioInterval {
  double low = 1, high = 1;
};

// How B relates to A. Above 1 B's figures are larger, which of latencies is worse and of rates is better.
struct Comparison {
  Difference difference = Difference::kTooFewRepetitions;
  std::vector<double> ratios;  // For each repetition, B's median over A's.
  double ratio = 1;            // Their median.
  std::optional<RatioInterval> interval;
  double confidence = 0.95;  // As asked for; see AttainableConfidence().
};

// Compares within repetitions only: what slows the machine in one of them slows both sides, and cancels. The interval
// is a percentile bootstrap of the median over the logarithms of the ratios. kInvalidArgument when there is no
// repetition, a side of one has no sample, a sample is not above 0, or an option makes no sense.
[[nodiscard]] Result<Comparison> Compare(std::span<const PairedSamples> repetitions,
                                         const ComparisonOptions& options = {});

// The most that an interval between the smallest and the largest of so many ratios can promise: that not all of them
// lie on one side of the true one. 75 % for 3 repetitions; 6 are enough for 95 %.
[[nodiscard]] double AttainableConfidence(std::size_t repetitions);

// One line for people: "B is 1.12 x A (1.05 - 1.20)", or "no difference shown: …" when the interval holds 1.
[[nodiscard]] std::string ComparisonText(const Comparison& comparison, std::string_view a = "A",
                                         std::string_view b = "B");

}  // namespace tandem::loadgen
