#include "loadgen/arrivals.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <utility>

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

// Later than any run ends, and still a number of nanoseconds.
constexpr double kLastSecond = 9e9;

std::optional<nanoseconds> FromNanoseconds(double at_ns) {
  if (!(at_ns < kLastSecond * 1e9)) return std::nullopt;
  return nanoseconds(static_cast<std::int64_t>(at_ns));
}

// Exponentially distributed, mean 1. By hand, since std::exponential_distribution gives other values in another
// library.
double UnitExponential(std::mt19937_64& random) {
  const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
  return -std::log1p(-uniform);
}

class PoissonArrivals final : public ArrivalProcess {
 public:
  PoissonArrivals(double rate, std::uint64_t seed) : mean_gap_ns_(1e9 / rate), random_(seed) {}

  std::optional<nanoseconds> Next() override {
    at_ns_ += UnitExponential(random_) * mean_gap_ns_;
    return FromNanoseconds(at_ns_);
  }

 private:
  const double mean_gap_ns_;
  std::mt19937_64 random_;
  double at_ns_ = 0;
};

class ConstantArrivals final : public ArrivalProcess {
 public:
  explicit ConstantArrivals(double rate) : gap_ns_(1e9L / rate) {}

  std::optional<nanoseconds> Next() override {
    // From the count and not by adding up gaps, which would drift.
    const long double at_ns = gap_ns_ * static_cast<long double>(count_);
    if (!(at_ns < kLastSecond * 1e9L)) return std::nullopt;
    ++count_;
    return nanoseconds(static_cast<std::int64_t>(at_ns));
  }

 private:
  const long double gap_ns_;
  std::uint64_t count_ = 0;
};

class ClosedLoop final : public ArrivalProcess {
 public:
  explicit ClosedLoop(int users) : free_(static_cast<std::size_t>(users), nanoseconds(0)) {}

  std::optional<nanoseconds> Next() override {
    if (free_.empty()) return std::nullopt;
    last_ = std::max(last_, free_.front());
    free_.pop_front();
    return last_;
  }

  void Completed(nanoseconds free_at) override { free_.push_back(free_at); }

  [[nodiscard]] bool open_loop() const override { return false; }

 private:
  std::deque<nanoseconds> free_;
  nanoseconds last_{0};
};

// A Poisson process whose rate follows a curve: one of rate 1, with each of its times put where the curve expects that
// many requests.
class CurveArrivals final : public ArrivalProcess {
 public:
  CurveArrivals(std::unique_ptr<const RateCurve> curve, std::uint64_t seed) : curve_(std::move(curve)), random_(seed) {}

  std::optional<nanoseconds> Next() override {
    expected_ += UnitExponential(random_);
    // The inverse is exact but for rounding, which must not turn two close times round.
    at_s_ = std::max(at_s_, curve_->TimeOf(expected_));
    return FromNanoseconds(at_s_ * 1e9);
  }

 private:
  const std::unique_ptr<const RateCurve> curve_;
  std::mt19937_64 random_;
  double expected_ = 0;
  double at_s_ = 0;
};

// A Poisson process whose rate is one of two. Phases have random numbers of their own, so that other rates leave them
// where they are.
class BurstyArrivals final : public ArrivalProcess {
 public:
  BurstyArrivals(const BurstyRate& rate, std::uint64_t seed)
      : rate_(rate), random_(seed), phase_random_(seed ^ kPhaseSeed) {
    const double uniform = static_cast<double>(phase_random_() >> 11) * 0x1p-53;
    on_ = uniform < rate_.on_s / (rate_.on_s + rate_.off_s);
    DrawPhase();
  }

  std::optional<nanoseconds> Next() override {
    double missing = UnitExponential(random_);
    while (at_s_ < kLastSecond) {
      const double rate = on_ ? rate_.on : rate_.off;
      const double in_phase = rate * (phase_end_s_ - at_s_);
      if (missing < in_phase) {
        at_s_ += missing / rate;
        return FromNanoseconds(at_s_ * 1e9);
      }
      missing -= in_phase;
      at_s_ = phase_end_s_;
      on_ = !on_;
      DrawPhase();
    }
    return std::nullopt;
  }

 private:
  static constexpr std::uint64_t kPhaseSeed = 0x9e37'79b9'7f4a'7c15;

  void DrawPhase() { phase_end_s_ += UnitExponential(phase_random_) * (on_ ? rate_.on_s : rate_.off_s); }

  const BurstyRate rate_;
  std::mt19937_64 random_;
  std::mt19937_64 phase_random_;
  bool on_ = false;
  double at_s_ = 0;
  double phase_end_s_ = 0;
};

class TraceArrivals final : public ArrivalProcess {
 public:
  explicit TraceArrivals(std::shared_ptr<const TraceStream> trace) : trace_(std::move(trace)) {}

  std::optional<nanoseconds> Next() override {
    if (next_ == trace_->rows.size()) return std::nullopt;
    return trace_->rows[next_++].time;
  }

  [[nodiscard]] std::uint32_t batch() const override { return next_ == 0 ? 1 : trace_->rows[next_ - 1].size; }

 private:
  const std::shared_ptr<const TraceStream> trace_;  // Shared with the spec.
  std::size_t next_ = 0;
};

Status CheckReplay(const ArrivalSpec& spec) {
  if (!spec.trace) return Invalid("the trace '{}' has not been read", spec.trace_file);
  nanoseconds before{0};
  for (const TraceRow& row : spec.trace->rows) {
    if (row.time < before) {
      return Invalid("the times of the trace of '{}' must not fall: {} ns comes after {} ns", spec.trace->model,
                     row.time.count(), before.count());
    }
    before = row.time;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ArrivalProcess>> MakeArrivals(const ArrivalSpec& spec, std::uint64_t seed,
                                                     std::optional<nanoseconds> run) {
  TANDEM_TRY(CheckArrivals(spec));
  const auto follow = [&](std::unique_ptr<const RateCurve> curve) {
    return std::make_unique<CurveArrivals>(std::move(curve), seed);
  };
  switch (spec.kind) {
    case ArrivalKind::kPoisson: return std::make_unique<PoissonArrivals>(spec.rate, seed);
    case ArrivalKind::kConstant: return std::make_unique<ConstantArrivals>(spec.rate);
    case ArrivalKind::kClosed: return std::make_unique<ClosedLoop>(spec.users);
    case ArrivalKind::kBursty: return std::make_unique<BurstyArrivals>(spec.bursty, seed);
    case ArrivalKind::kRamp: {
      if (!spec.ramp.over_s && (!run || *run <= nanoseconds(0))) {
        return Invalid("ramp arrivals need 'over_s' where the length of the run is not known");
      }
      const double over_s = spec.ramp.over_s ? *spec.ramp.over_s : std::chrono::duration<double>(*run).count();
      return follow(MakeRampCurve(spec.ramp, over_s));
    }
    case ArrivalKind::kSteps: return follow(MakeStepsCurve(spec.steps));
    case ArrivalKind::kDiurnal: return follow(MakeDiurnalCurve(spec.diurnal));
    case ArrivalKind::kTrace: {
      TANDEM_TRY(CheckReplay(spec));
      return std::make_unique<TraceArrivals>(spec.trace);
    }
  }
  return Invalid("there is no kind of arrivals {}", static_cast<int>(spec.kind));
}

}  // namespace tandem::loadgen
