#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "loadgen/arrivals.h"
#include "loadgen/verdict.h"

namespace tandem::loadgen {

// Rates in requests per second.
struct RateSearchOptions {
  double start = 100;
  double lowest = 1;
  double highest = kMaxRate;
  double tolerance = 0.03;  // How far above the result the next rate that did not pass may lie, as a share of it.
  int confirmations = 2;    // Further trials that the result has to pass.
  int max_trials = 50;      // In all.
};

enum class RateOutcome : std::uint8_t {
  kSearching,
  kConfirmed,        // The rate passed every trial, and one a little above did not.
  kPassesAtHighest,  // The highest rate asked for passed every trial; the server may bear more.
  kFailsAtLowest,    // Not even the lowest rate passed.
  kUnconfirmed,      // Out of trials: the rate passed at least one, but was not confirmed.
  kNotFound,         // Out of trials before any rate passed.
};

// As in JSON: "confirmed", "passes_at_highest", …
[[nodiscard]] std::string_view RateOutcomeName(RateOutcome outcome);

struct RateSearchResult {
  RateOutcome outcome = RateOutcome::kSearching;
  std::optional<double> rate;        // The highest that passes, as far as is known.
  std::optional<double> upper;       // The lowest that did not pass;
  bool upper_inconclusive = false;   // this one because it took too few requests to tell.
  int confirmed = 0;                 // Further trials that `rate` passed.
  int trials = 0, inconclusive = 0;  // Of all that were made.
};

// Finds the highest rate that passes: doubles the rate while it passes (or halves it while it fails), then halves the
// gap between what passes and what does not on a logarithmic scale, then tries the result again. When it does not pass
// again, that rate becomes the upper end, and the search goes on below. What is inconclusive does not pass.
//
// A pure state machine: it runs nothing and knows no time. The caller tries what Next() says and hands over the
// verdict. Used by one thread.
class RateSearch {
 public:
  // kInvalidArgument when the rates are not in order, or a number makes no sense.
  [[nodiscard]] static Result<RateSearch> Create(const RateSearchOptions& options);

  // The rate to try now; nothing when the search is over, after max_trials trials at the latest.
  [[nodiscard]] std::optional<double> Next() const;
  // What came of that trial. kInvalidArgument for another rate than Next() says; nothing changes then.
  [[nodiscard]] Status Observe(double rate, VerdictKind verdict);

  // What is known so far; the result once Next() has nothing more.
  [[nodiscard]] RateSearchResult result() const;
  // One line for people: the trial that comes next and why, or the result.
  [[nodiscard]] std::string Describe() const;

 private:
  explicit RateSearch(const RateSearchOptions& options) : options_(options), next_(options.start) {}

  [[nodiscard]] std::optional<double> low() const;
  // The gap is as small as it has to be, and only confirmations are missing.
  [[nodiscard]] bool Confirming() const;
  void Passed(double rate);
  void NotPassed(double rate, VerdictKind verdict);
  [[nodiscard]] RateOutcome Conclude() const;
  [[nodiscard]] double ChooseNext() const;
  [[nodiscard]] std::string DescribeTrial() const;
  [[nodiscard]] std::string DescribeResult() const;

  RateSearchOptions options_;

  double next_;
  std::vector<double> passed_;  // Rising, and all below high_: when the last is refuted, the one before stands.
  std::optional<double> high_;
  VerdictKind high_verdict_ = VerdictKind::kFail;
  int confirmed_ = 0;  // Further trials that passed_.back() passed.
  int trials_ = 0;
  int inconclusive_ = 0;
  RateOutcome outcome_ = RateOutcome::kSearching;
};

}  // namespace tandem::loadgen
