#include "loadgen/rate_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>
#include <vector>

namespace tandem::loadgen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTurn = 2 * std::numbers::pi;

// Straight pieces, one after the other; the last one is level and has no end.
class PiecewiseRate final : public RateCurve {
 public:
  void Append(double from, double to, double seconds) {
    pieces_.push_back({.start = length_, .seconds = seconds, .from = from, .to = to, .before = expected_});
    length_ += seconds;
    expected_ += (from + to) / 2 * seconds;
  }
  void Hold(double rate) {
    pieces_.push_back({.start = length_, .seconds = kInfinity, .from = rate, .to = rate, .before = expected_});
  }

  [[nodiscard]] double Expected(double seconds) const override {
    if (seconds <= 0) return 0;
    const auto after = std::ranges::partition_point(pieces_, [&](const Piece& p) { return p.start < seconds; });
    const Piece& piece = *std::prev(after);
    const double within = seconds - piece.start;
    return piece.before + (piece.from + piece.slope() / 2 * within) * within;
  }

  [[nodiscard]] double TimeOf(double expected) const override {
    if (expected <= 0) return 0;
    // A pause begins with what was expected before it, and is passed over: no request is due at its end.
    const auto after = std::ranges::partition_point(pieces_, [&](const Piece& p) { return p.before < expected; });
    const Piece& piece = *std::prev(after);
    const double missing = expected - piece.before;
    // The root of slope/2·t² + from·t = missing, in the form that does not cancel. Rounding may push what is below the
    // root under zero at the very end of a fall to nothing.
    const double rate_then = std::sqrt(std::max(0.0, piece.from * piece.from + 2 * piece.slope() * missing));
    return piece.start + std::min(piece.seconds, 2 * missing / (piece.from + rate_then));
  }

 private:
  struct Piece {
    double start, seconds;
    double from, to;
    double before;  // Requests expected until the start.

    [[nodiscard]] double slope() const { return (to - from) / seconds; }
  };

  std::vector<Piece> pieces_;
  double length_ = 0;    // Of the pieces that end.
  double expected_ = 0;  // In them.
};

// Without the loss of digits that the subtraction has for small angles.
double OneMinusCosine(double angle) {
  const double half = std::sin(angle / 2);
  return 2 * half * half;
}

class SineRate final : public RateCurve {
 public:
  explicit SineRate(const DiurnalRate& diurnal) : diurnal_(diurnal) {}

  [[nodiscard]] double Expected(double seconds) const override {
    const double angle = kTurn * std::fmod(seconds, diurnal_.period_s) / diurnal_.period_s;
    return diurnal_.mean * (seconds + diurnal_.swing * diurnal_.period_s / kTurn * OneMinusCosine(angle));
  }

  [[nodiscard]] double TimeOf(double expected) const override {
    // Whole periods are as many as at the mean rate, so that the angle stays small and exact.
    const double periods = expected / (diurnal_.mean * diurnal_.period_s);
    const double whole = std::floor(periods);
    return (whole + AngleOf((periods - whole) * kTurn) / kTurn) * diurnal_.period_s;
  }

 private:
  // The angle at which angle + swing·(1 − cos angle) = `sum`, for 0 ≤ sum ≤ 2π. It has no closed form: Newton's steps,
  // halving instead where one would leave the bracket, as it does where the rate is all but zero.
  [[nodiscard]] double AngleOf(double sum) const {
    constexpr int kMostSteps = 100;
    constexpr double kClose = 1e-15;
    double low = std::max(0.0, sum - 2 * diurnal_.swing);
    double high = sum;
    double angle = (low + high) / 2;
    for (int i = 0; i < kMostSteps; ++i) {
      const double over = angle + diurnal_.swing * OneMinusCosine(angle) - sum;
      (over > 0 ? high : low) = angle;
      double next = angle - over / (1 + diurnal_.swing * std::sin(angle));
      if (!(next >= low && next <= high)) next = (low + high) / 2;
      if (std::abs(next - angle) <= kClose) return next;
      angle = next;
    }
    return angle;
  }

  const DiurnalRate diurnal_;
};

}  // namespace

std::unique_ptr<const RateCurve> MakeRampCurve(const RampRate& ramp, double over_s) {
  auto curve = std::make_unique<PiecewiseRate>();
  curve->Append(ramp.from, ramp.to, over_s);
  curve->Hold(ramp.to);
  return curve;
}

std::unique_ptr<const RateCurve> MakeStepsCurve(std::span<const RateStep> steps) {
  auto curve = std::make_unique<PiecewiseRate>();
  for (const RateStep& step : steps) curve->Append(step.rate, step.rate, step.seconds);
  curve->Hold(steps.back().rate);
  return curve;
}

std::unique_ptr<const RateCurve> MakeDiurnalCurve(const DiurnalRate& diurnal) {
  return std::make_unique<SineRate>(diurnal);
}

}  // namespace tandem::loadgen
