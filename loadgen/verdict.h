#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/base/result.h"

namespace tandem::loadgen {

// What is asked of a server: `percentile` % of all offered requests answered within `bound`.
struct LatencyTarget {
  std::chrono::nanoseconds bound{0};  // For the text only; what is over it was counted by the caller.
  double percentile = 99;
  double confidence = 0.99;  // Of a verdict, either way.
};

enum class VerdictKind : std::uint8_t {
  kPass,          // At most 100 - percentile % of requests miss, with the confidence asked for.
  kFail,          // More than that miss, with the same confidence.
  kInconclusive,  // Too few requests to say.
};

// As in JSON: "pass", "fail", "inconclusive".
[[nodiscard]] std::string_view VerdictName(VerdictKind kind);

struct Verdict {
  VerdictKind kind = VerdictKind::kInconclusive;
  LatencyTarget target;
  std::uint64_t offered = 0;
  std::uint64_t over = 0;  // Late, rejected and failed.

  // When inconclusive: how many more requests make it a pass if none of them misses,
  std::uint64_t more_without_a_miss = 0;
  // and about how many in all if they go on to miss as often; nothing when that is too often, or takes too many.
  std::optional<std::uint64_t> total_at_this_share;
};

// Counts beyond are refused: up to here a double tells each from the next.
inline constexpr std::uint64_t kMaxJudgedRequests = 1'000'000'000'000'000;

// The smallest number of requests of which `over` may miss for a pass. kInvalidArgument for a percentile outside
// (0,100), a confidence outside (0,1), and an answer above kMaxJudgedRequests.
[[nodiscard]] Result<std::uint64_t> MinimumCount(double percentile, std::uint64_t over, double confidence = 0.99);

// Judges a run in the manner of MLPerf LoadGen's Server scenario with early stopping: neither a pass nor a fail may be
// luck. `over` counts every offered request without a good answer within the bound. The errors are those of
// MinimumCount(), and more misses than requests.
[[nodiscard]] Result<Verdict> Judge(const LatencyTarget& target, std::uint64_t offered, std::uint64_t over);

// One line for people: "PASS: 12 of 3,000 over 100 ms; p99 within the bound with 99 % confidence".
[[nodiscard]] std::string VerdictText(const Verdict& verdict);
// One JSON object.
[[nodiscard]] std::string VerdictJson(const Verdict& verdict);

}  // namespace tandem::loadgen
