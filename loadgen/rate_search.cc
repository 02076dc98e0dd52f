#include "loadgen/rate_search.h"

#include <algorithm>
#include <cmath>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

constexpr int kMostTrials = 10'000;
// No server is so steady that less could be told apart.
constexpr double kLeastTolerance = 0.001;

// Four significant digits are more than any search finds.
std::string RateText(double rate) {
  return rate >= 1000 ? Format("{:.0f}", rate) : Format("{:.4g}", rate);
}

std::string_view NotPassedText(VerdictKind verdict) {
  return verdict == VerdictKind::kInconclusive ? "inconclusive" : "fails";
}

}  // namespace

std::string_view RateOutcomeName(RateOutcome outcome) {
  switch (outcome) {
    case RateOutcome::kSearching: return "searching";
    case RateOutcome::kConfirmed: return "confirmed";
    case RateOutcome::kPassesAtHighest: return "passes_at_highest";
    case RateOutcome::kFailsAtLowest: return "fails_at_lowest";
    case RateOutcome::kUnconfirmed: return "unconfirmed";
    case RateOutcome::kNotFound: return "not_found";
  }
  return "unknown";
}

Result<RateSearch> RateSearch::Create(const RateSearchOptions& options) {
  if (!(options.lowest > 0)) return Invalid("the lowest rate must be above 0, got {}", options.lowest);
  if (!(options.highest <= kMaxRate)) {
    return Invalid("the highest rate must be at most {}, got {}", kMaxRate, options.highest);
  }
  if (!(options.lowest <= options.start && options.start <= options.highest)) {
    return Invalid("the search must start between the lowest and the highest rate, got {} for {} to {}", options.start,
                   options.lowest, options.highest);
  }
  if (!(options.tolerance >= kLeastTolerance && options.tolerance <= 1)) {
    return Invalid("the tolerance must be between {} and 1, got {}", kLeastTolerance, options.tolerance);
  }
  if (options.confirmations < 0) return Invalid("confirmations must not be below 0, got {}", options.confirmations);
  if (options.max_trials < 1 || options.max_trials > kMostTrials) {
    return Invalid("trials must be between 1 and {}, got {}", kMostTrials, options.max_trials);
  }
  return RateSearch(options);
}

std::optional<double> RateSearch::low() const {
  if (passed_.empty()) return std::nullopt;
  return passed_.back();
}

std::optional<double> RateSearch::Next() const {
  if (outcome_ != RateOutcome::kSearching) return std::nullopt;
  return next_;
}

bool RateSearch::Confirming() const {
  if (passed_.empty()) return false;
  return high_ ? *high_ <= passed_.back() * (1 + options_.tolerance) : passed_.back() >= options_.highest;
}

Status RateSearch::Observe(double rate, VerdictKind verdict) {
  if (outcome_ != RateOutcome::kSearching) return Invalid("the search is over; rate {} was not asked for", rate);
  if (rate != next_) return Invalid("rate {} was to be tried, not {}", next_, rate);
  ++trials_;
  if (verdict == VerdictKind::kPass) {
    Passed(rate);
  } else {
    NotPassed(rate, verdict);
  }
  outcome_ = Conclude();
  if (outcome_ == RateOutcome::kSearching) next_ = ChooseNext();
  return {};
}

void RateSearch::Passed(double rate) {
  if (low() == rate) {
    ++confirmed_;
    return;
  }
  passed_.push_back(rate);
  confirmed_ = 0;
}

void RateSearch::NotPassed(double rate, VerdictKind verdict) {
  if (verdict == VerdictKind::kInconclusive) ++inconclusive_;
  if (low() == rate) passed_.pop_back();
  high_ = rate;
  high_verdict_ = verdict;
  confirmed_ = 0;
}

RateOutcome RateSearch::Conclude() const {
  if (high_ && *high_ <= options_.lowest) return RateOutcome::kFailsAtLowest;
  if (Confirming() && confirmed_ >= options_.confirmations) {
    return high_ ? RateOutcome::kConfirmed : RateOutcome::kPassesAtHighest;
  }
  if (trials_ < options_.max_trials) return RateOutcome::kSearching;
  return passed_.empty() ? RateOutcome::kNotFound : RateOutcome::kUnconfirmed;
}

double RateSearch::ChooseNext() const {
  if (Confirming()) return passed_.back();
  if (passed_.empty()) return std::max(*high_ / 2, options_.lowest);
  if (!high_) return std::min(passed_.back() * 2, options_.highest);
  return std::sqrt(passed_.back() * *high_);
}

RateSearchResult RateSearch::result() const {
  return {.outcome = outcome_,
          .rate = low(),
          .upper = high_,
          .upper_inconclusive = high_.has_value() && high_verdict_ == VerdictKind::kInconclusive,
          .confirmed = confirmed_,
          .trials = trials_,
          .inconclusive = inconclusive_};
}

std::string RateSearch::Describe() const {
  return outcome_ == RateOutcome::kSearching ? DescribeTrial() : DescribeResult();
}

std::string RateSearch::DescribeTrial() const {
  const std::string trial = Format("trial {}: {} requests per second", trials_ + 1, RateText(next_));
  if (Confirming()) return trial + Format(", confirmation {} of {}", confirmed_ + 1, options_.confirmations);
  if (low() && high_) {
    return trial + Format(", between {} (passes) and {} ({})", RateText(*low()), RateText(*high_),
                          NotPassedText(high_verdict_));
  }
  if (low()) return trial + Format(", above {} (passes)", RateText(*low()));
  if (high_) return trial + Format(", below {} ({})", RateText(*high_), NotPassedText(high_verdict_));
  return trial + ", the start";
}

std::string RateSearch::DescribeResult() const {
  const std::string after = Format("after {} trial{}", trials_, trials_ == 1 ? "" : "s");
  const std::string upper = high_ ? Format("{} ({})", RateText(*high_), NotPassedText(high_verdict_)) : "";
  const std::string rate = low() ? Format("{} requests per second", RateText(*low())) : "";
  switch (outcome_) {
    case RateOutcome::kSearching: break;
    case RateOutcome::kConfirmed:
      return Format("{} {}: confirmed by {} more; next above is {}", rate, after, confirmed_, upper);
    case RateOutcome::kPassesAtHighest:
      return Format("{} {}: passes at the highest rate asked for, confirmed by {} more", rate, after, confirmed_);
    case RateOutcome::kFailsAtLowest:
      return Format("no rate {}: {} even at the lowest rate, {} requests per second", after,
                    NotPassedText(high_verdict_), RateText(*high_));
    case RateOutcome::kUnconfirmed:
      return Format("{} {}, which are all: passes, but is not confirmed{}", rate, after,
                    high_ ? "; next above is " + upper : "");
    case RateOutcome::kNotFound: return Format("no rate {}, which are all: lowest tried is {}", after, upper);
  }
  return "";
}

}  // namespace tandem::loadgen
