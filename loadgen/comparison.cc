#include "loadgen/comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

constexpr std::size_t kFewestResamples = 100;
constexpr std::size_t kMostResamples = 10'000'000;
constexpr int kMostDecimals = 6;

// A whole number below `end`. By hand, since std::uniform_int_distribution gives other values in another library.
std::size_t Draw(std::mt19937_64& random, std::size_t end) {
  return static_cast<std::size_t>((random() >> 32) * end >> 32);
}

// Reorders the values.
double Median(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Result<double> MedianOf(std::vector<double> samples, std::string_view side, std::size_t repetition) {
  if (samples.empty()) return Invalid("side {} has no sample in repetition {}", side, repetition + 1);
  for (const double sample : samples) {
    if (!std::isfinite(sample) || sample <= 0) {
      return Invalid("samples must be above 0, got {} for side {} in repetition {}", sample, side, repetition + 1);
    }
  }
  return Median(samples);
}

Status CheckOptions(const ComparisonOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1)) {
    return Invalid("confidence must lie between 0 and 1, got {}", options.confidence);
  }
  if (options.resamples < kFewestResamples || options.resamples > kMostResamples) {
    return Invalid("resamples must be between {} and {}, got {}", kFewestResamples, kMostResamples, options.resamples);
  }
  return {};
}

// Whole repetitions are drawn again, and not samples: those of one run are not independent of each other.
RatioInterval Bootstrap(std::span<const double> logs, const ComparisonOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<double> medians(options.resamples);
  std::vector<double> drawn(logs.size());
  for (double& median : medians) {
    for (double& value : drawn) value = logs[Draw(random, logs.size())];
    median = Median(drawn);
  }
  std::ranges::sort(medians);
  const double outside = (1 - options.confidence) / 2 * static_cast<double>(options.resamples);
  const auto skipped = std::min(static_cast<std::size_t>(outside), (options.resamples - 1) / 2);
  return {.low = std::exp(medians[skipped]), .high = std::exp(medians[options.resamples - 1 - skipped])};
}

bool HoldsOne(const RatioInterval& interval) {
  return interval.low <= 1 && interval.high >= 1;
}

// Two decimals, or as many as it takes to show small ratios, and that an interval does not hold 1.
int DecimalsFor(const Comparison& comparison) {
  const RatioInterval shown = comparison.interval.value_or(RatioInterval{comparison.ratio, comparison.ratio});
  int decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(shown.low))), 2, kMostDecimals);
  const auto looks_like_one = [&](double value) { return std::abs(value - 1) < 0.5 * std::pow(10, -decimals); };
  if (comparison.difference == Difference::kShown) {
    while (decimals < kMostDecimals && (looks_like_one(shown.low) || looks_like_one(shown.high))) ++decimals;
  }
  return decimals;
}

}  // namespace

std::vector<std::vector<std::size_t>> RunOrder(std::size_t sides, std::size_t repetitions, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::size_t>> order(repetitions, std::vector<std::size_t>(sides));
  for (std::vector<std::size_t>& repetition : order) {
    std::iota(repetition.begin(), repetition.end(), std::size_t{0});
    for (std::size_t left = sides; left > 1; --left) std::swap(repetition[left - 1], repetition[Draw(random, left)]);
  }
  return order;
}

std::string_view DifferenceName(Difference difference) {
  switch (difference) {
    case Difference::kShown: return "shown";
    case Difference::kNotShown: return "not_shown";
    case Difference::kTooFewRepetitions: return "too_few_repetitions";
  }
  return "unknown";
}

Result<Comparison> Compare(std::span<const PairedSamples> repetitions, const ComparisonOptions& options) {
  TANDEM_TRY(CheckOptions(options));
  if (repetitions.empty()) return Invalid("there is no repetition to compare");
  Comparison comparison{.confidence = options.confidence};
  std::vector<double> logs;
  for (std::size_t i = 0; i < repetitions.size(); ++i) {
    TANDEM_ASSIGN(const double a, MedianOf(repetitions[i].a, "A", i));
    TANDEM_ASSIGN(const double b, MedianOf(repetitions[i].b, "B", i));
    comparison.ratios.push_back(b / a);
    logs.push_back(std::log(b) - std::log(a));
  }
  if (logs.size() >= kLeastRepetitions) {
    comparison.interval = Bootstrap(logs, options);
    comparison.difference = HoldsOne(*comparison.interval) ? Difference::kNotShown : Difference::kShown;
  }
  // Of the logarithms too, so that of an even number of ratios A against B is the inverse of B against A.
  comparison.ratio = std::exp(Median(logs));
  return comparison;
}

double AttainableConfidence(std::size_t repetitions) {
  return repetitions == 0 ? 0 : 1 - std::exp2(1 - static_cast<double>(repetitions));
}

std::string ComparisonText(const Comparison& comparison, std::string_view a, std::string_view b) {
  const int decimals = DecimalsFor(comparison);
  const std::size_t repetitions = comparison.ratios.size();
  std::string text = comparison.difference == Difference::kNotShown ? "no difference shown: " : "";
  text += Format("{} is {:.{}f} x {}", b, comparison.ratio, decimals, a);
  if (!comparison.interval) {
    return text + Format("; no interval, since {} repetition{} too few to tell it from chance, and {} are needed",
                         repetitions, repetitions == 1 ? " is" : "s are", kLeastRepetitions);
  }
  text += Format(" ({:.{}f} - {:.{}f})", comparison.interval->low, decimals, comparison.interval->high, decimals);
  if (AttainableConfidence(repetitions) < comparison.confidence) {
    text += Format("; {} repetitions allow at most {:.3g} % confidence, not {:.10g} %", repetitions,
                   AttainableConfidence(repetitions) * 100, comparison.confidence * 100);
  }
  return text;
}

}  // namespace tandem::loadgen
