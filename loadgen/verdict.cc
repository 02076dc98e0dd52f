#include "loadgen/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/binomial_tail.h"

namespace tandem::loadgen {
namespace {

constexpr int kMaxNewtonSteps = 12;
// "About" so many requests: to one part in a hundred.
constexpr std::uint64_t kRoughly = 100;
constexpr double kMostMissesAhead = 1e6;

double AllowedShare(double percentile) {
  return (100 - percentile) / 100;
}

Status CheckTarget(double percentile, double confidence) {
  const double share = AllowedShare(percentile);
  if (!(share > 0 && share < 1)) return Invalid("percentile must lie between 0 and 100, got {}", percentile);
  if (!(confidence > 0 && confidence < 1)) return Invalid("confidence must lie between 0 and 1, got {}", confidence);
  return {};
}

// If `share` of all requests missed, so few misses would be too unlikely: P[Binomial(offered, share) <= over] is at
// most 1 - confidence. The tail includes `over` itself; so defined, p99 at 99 % takes 459, 662, 2010 and 12571 requests
// for 0, 1, 10 and 100 misses.
bool Passes(std::uint64_t offered, std::uint64_t over, double share, double log_doubt) {
  return LogProbabilityOfAtMost(offered, over, share) <= log_doubt;
}

// The smallest count for which `holds` is true, found outward from `guess`; above `ceiling` when there is none up to
// there. `holds` is false up to that count and true from it on. The answer is exact, or above it by less than one part
// in `precision` when that is given.
template <typename Predicate>
std::uint64_t SmallestCount(std::uint64_t guess, std::uint64_t ceiling, Predicate holds, std::uint64_t precision = 0) {
  std::uint64_t low = 0;
  std::uint64_t high = std::min(guess, ceiling);
  std::uint64_t step = precision == 0 ? 1 : std::max<std::uint64_t>(guess / precision, 1);
  if (holds(high)) {
    for (; step < high; step *= 2) {
      if (!holds(high - step)) {
        low = high - step;
        break;
      }
      high -= step;
    }
  } else {
    do {
      if (high == ceiling) return ceiling + 1;
      low = high;
      high = std::min(high + step, ceiling);
      step *= 2;
    } while (!holds(high));
  }
  while (high - low > 1 + (precision == 0 ? 0 : low / precision)) {
    const std::uint64_t middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

// Near the smallest count that passes, by Newton's method on the logarithm of the tail: one request more takes
// share * P[exactly over] off it. From the count that has `over` + 1 misses on average.
std::uint64_t GuessMinimumCount(std::uint64_t over, double share, double log_doubt) {
  const auto ceiling = static_cast<double>(kMaxJudgedRequests);
  double count = std::min((static_cast<double>(over) + 1) / share, ceiling);
  for (int i = 0; i < kMaxNewtonSteps; ++i) {
    const auto whole = static_cast<std::uint64_t>(count);
    const double tail = LogProbabilityOfAtMost(whole, over, share);
    const double slope = share * std::exp(LogProbabilityOf(whole, over, share) - tail);
    const double step = (tail - log_doubt) / slope;
    if (!std::isfinite(step)) break;
    count = std::clamp(count + step, static_cast<double>(over) + 1, ceiling);
    if (std::abs(step) < 1) break;
  }
  return static_cast<std::uint64_t>(count);
}

std::uint64_t SmallestPass(std::uint64_t over, double share, double log_doubt) {
  return SmallestCount(GuessMinimumCount(over, share, log_doubt), kMaxJudgedRequests,
                       [&](std::uint64_t count) { return Passes(count, over, share, log_doubt); });
}

// Nothing when it takes more than a million misses: so close to the limit nobody waits for the verdict.
std::optional<std::uint64_t> TotalAtShare(std::uint64_t needed, double observed, double share, double log_doubt) {
  const std::uint64_t ceiling = std::max(needed, static_cast<std::uint64_t>(kMostMissesAhead / share));
  const std::uint64_t total = SmallestCount(
      needed, ceiling,
      [&](std::uint64_t count) {
        const auto misses = static_cast<std::uint64_t>(std::ceil(observed * static_cast<double>(count)));
        return Passes(count, misses, share, log_doubt);
      },
      kRoughly);
  if (total > ceiling) return std::nullopt;
  return std::max(total, needed);
}

// 12,345
std::string Grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

// Two significant digits, as fits what is said with "about". Upward, so as not to promise too much.
std::uint64_t Rounded(std::uint64_t number) {
  std::uint64_t unit = 1;
  while (number / unit >= 100) unit *= 10;
  return (number + unit - 1) / unit * unit;
}

std::string NeededText(const Verdict& verdict) {
  std::string text =
      Format("{} more request{} without a miss {} needed", Grouped(verdict.more_without_a_miss),
             verdict.more_without_a_miss == 1 ? "" : "s", verdict.more_without_a_miss == 1 ? "is" : "are");
  if (verdict.over == 0) return text;
  if (verdict.total_at_this_share) {
    text += Format(", or about {} in all at this share of misses", Grouped(Rounded(*verdict.total_at_this_share)));
  } else {
    text += "; at this share of misses more requests would hardly help";
  }
  return text;
}

}  // namespace

std::string_view VerdictName(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kPass: return "pass";
    case VerdictKind::kFail: return "fail";
    case VerdictKind::kInconclusive: return "inconclusive";
  }
  return "unknown";
}

Result<std::uint64_t> MinimumCount(double percentile, std::uint64_t over, double confidence) {
  TANDEM_TRY(CheckTarget(percentile, confidence));
  if (over >= kMaxJudgedRequests)
    return Invalid("fewer than {} misses can be judged, got {}", kMaxJudgedRequests, over);
  const std::uint64_t count = SmallestPass(over, AllowedShare(percentile), std::log1p(-confidence));
  if (count > kMaxJudgedRequests) {
    return Invalid("p{} with {} misses takes more than {} requests", percentile, over, kMaxJudgedRequests);
  }
  return count;
}

Result<Verdict> Judge(const LatencyTarget& target, std::uint64_t offered, std::uint64_t over) {
  TANDEM_TRY(CheckTarget(target.percentile, target.confidence));
  if (over > offered) return Invalid("{} of {} requests cannot have missed", over, offered);
  if (offered > kMaxJudgedRequests) {
    return Invalid("at most {} requests can be judged, got {}", kMaxJudgedRequests, offered);
  }
  Verdict verdict{.target = target, .offered = offered, .over = over};
  const double share = AllowedShare(target.percentile);
  const double log_doubt = std::log1p(-target.confidence);
  if (Passes(offered, over, share, log_doubt)) {
    verdict.kind = VerdictKind::kPass;
    return verdict;
  }
  if (LogProbabilityOfAtLeast(offered, over, share) <= log_doubt) {
    verdict.kind = VerdictKind::kFail;
    return verdict;
  }
  TANDEM_ASSIGN(const std::uint64_t needed, MinimumCount(target.percentile, over, target.confidence));
  verdict.more_without_a_miss = std::max(needed, offered + 1) - offered;
  const double observed = offered == 0 ? 0 : static_cast<double>(over) / static_cast<double>(offered);
  if (over == 0) {
    verdict.total_at_this_share = needed;
  } else if (observed < share) {
    verdict.total_at_this_share = TotalAtShare(needed, observed, share, log_doubt);
  }
  return verdict;
}

std::string VerdictText(const Verdict& verdict) {
  std::string name(VerdictName(verdict.kind));
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  const std::string counted = Format("{}: {} of {} over {:.6g} ms; ", name, Grouped(verdict.over),
                                     Grouped(verdict.offered), Ms(verdict.target.bound));
  if (verdict.kind == VerdictKind::kInconclusive) return counted + NeededText(verdict);
  return counted + Format("p{} {} the bound with {:.10g} % confidence", verdict.target.percentile,
                          verdict.kind == VerdictKind::kPass ? "within" : "beyond", verdict.target.confidence * 100);
}

std::string VerdictJson(const Verdict& verdict) {
  const bool open = verdict.kind == VerdictKind::kInconclusive;
  return Format(
      "{{\"result\":\"{}\",\"text\":{},\"percentile\":{},\"confidence\":{},\"bound_ms\":{},\"offered\":{},\"over\":{},"
      "\"more_without_a_miss\":{},\"total_at_this_share\":{}}}",
      VerdictName(verdict.kind), JsonString(VerdictText(verdict)), verdict.target.percentile, verdict.target.confidence,
      Ms(verdict.target.bound), verdict.offered, verdict.over,
      open ? std::to_string(verdict.more_without_a_miss) : "null",
      verdict.total_at_this_share ? std::to_string(*verdict.total_at_this_share) : "null");
}

}  // namespace tandem::loadgen
