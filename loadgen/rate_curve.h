#pragma once

#include <memory>
#include <optional>
#include <span>

namespace tandem::loadgen {

// A rate of requests that goes linearly from one value to another and then stays.
struct RampRate {
  double from = 0, to = 0;       // Requests per second.
  std::optional<double> over_s;  // Nothing: over the whole run.
};

// A rate that is kept for some time.
struct RateStep {
  double rate = 0;  // Requests per second; 0 is a pause.
  double seconds = 0;
};

// mean · (1 + swing · sin(2π t / period)): starts at the mean and rises; the lowest point comes after three quarters of
// the period.
struct DiurnalRate {
  double mean = 0;   // Requests per second.
  double swing = 0;  // 0 is a constant rate; 1 goes down to nothing and up to twice the mean.
  double period_s = 0;
};

// A rate of requests over time, as the integral that time rescaling needs. Pure, and constant after construction: any
// thread may ask.
class RateCurve {
 public:
  virtual ~RateCurve() = default;

  // How many requests are expected from the start until then. Never falls.
  [[nodiscard]] virtual double Expected(double seconds) const = 0;

  // The inverse: the first time by which so many are expected, infinity when there never are.
  [[nodiscard]] virtual double TimeOf(double expected) const = 0;
};

// The parameters have been checked (CheckArrivals); `over_s` stands in for that of the ramp.
[[nodiscard]] std::unique_ptr<const RateCurve> MakeRampCurve(const RampRate& ramp, double over_s);
// The last step is held for ever. There is at least one.
[[nodiscard]] std::unique_ptr<const RateCurve> MakeStepsCurve(std::span<const RateStep> steps);
[[nodiscard]] std::unique_ptr<const RateCurve> MakeDiurnalCurve(const DiurnalRate& diurnal);

}  // namespace tandem::loadgen
