#include "loadgen/binomial_tail.h"

#include <cmath>
#include <numbers>

namespace tandem::loadgen {
namespace {

// What is left out of a sum, as a share of it.
constexpr double kNegligible = 1e-16;

// log(n!) less Stirling's (n + 1/2) log n - n + log(2 pi) / 2. Differences of log-gammas would lose the digits that
// matter: at a billion requests they are ten orders of magnitude larger than the result.
double StirlingError(double n) {
  if (n >= 16) {
    const double square = n * n;
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / (1680 * square)) / square) / square) / n;
  }
  double factorial = 1;
  for (int i = 2; i <= static_cast<int>(n); ++i) factorial *= i;
  return std::log(factorial) - (n + 0.5) * std::log(n) + n - std::log(2 * std::numbers::pi) / 2;
}

// The sum of the probabilities from `edge` outward, as a multiple of the first. They fall from one to the next, ever
// faster, since the edge lies on the far side of the mean: all terms are positive, and nothing cancels.
double SumDownward(double count, double edge, double share) {
  const double odds = (1 - share) / share;
  double sum = 1;
  double term = 1;
  for (double k = edge; k > 0 && term > kNegligible * sum; --k) {
    term *= k * odds / (count - k + 1);
    sum += term;
  }
  return sum;
}

double SumUpward(double count, double edge, double share) {
  const double odds = share / (1 - share);
  double sum = 1;
  double term = 1;
  for (double k = edge; k < count && term > kNegligible * sum; ++k) {
    term *= (count - k) * odds / (k + 1);
    sum += term;
  }
  return sum;
}

double LogOfComplement(double log_probability) {
  return std::log(-std::expm1(log_probability));
}

}  // namespace

double LogProbabilityOf(std::uint64_t count, std::uint64_t misses, double share) {
  const auto n = static_cast<double>(count);
  const auto k = static_cast<double>(misses);
  if (misses == 0) return n * std::log1p(-share);
  if (misses == count) return n * std::log(share);
  // The powers of n, k and n - k are gathered around the expected number of misses, where they nearly cancel.
  const double surplus = std::fma(n, share, -k);
  return k * std::log1p(surplus / k) + (n - k) * std::log1p(-surplus / (n - k)) +
         std::log(n / (2 * std::numbers::pi * k * (n - k))) / 2 + StirlingError(n) - StirlingError(k) -
         StirlingError(n - k);
}

double LogProbabilityOfAtMost(std::uint64_t count, std::uint64_t misses, double share) {
  if (misses >= count) return 0;
  const auto n = static_cast<double>(count);
  const auto k = static_cast<double>(misses);
  if (k >= n * share) return LogOfComplement(LogProbabilityOfAtLeast(count, misses + 1, share));
  return LogProbabilityOf(count, misses, share) + std::log(SumDownward(n, k, share));
}

double LogProbabilityOfAtLeast(std::uint64_t count, std::uint64_t misses, double share) {
  if (misses == 0) return 0;
  const auto n = static_cast<double>(count);
  const auto k = static_cast<double>(misses);
  if (k <= n * share) return LogOfComplement(LogProbabilityOfAtMost(count, misses - 1, share));
  return LogProbabilityOf(count, misses, share) + std::log(SumUpward(n, k, share));
}

}  // namespace tandem::loadgen
