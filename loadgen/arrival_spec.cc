#include "loadgen/arrival_spec.h"

#include <cmath>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

// A field of a spec, for checks and their messages.
struct Field {
  ArrivalKind kind;
  std::string name;
  double value = 0;

  [[nodiscard]] Status Between(double least, double most) const {
    // Also what is not a number.
    if (!(value >= least && value <= most)) {
      return Invalid("field '{}' of {} arrivals must be between {} and {}, got {}", name, ArrivalKindName(kind), least,
                     most, value);
    }
    return {};
  }
  [[nodiscard]] Status AboveZero(double most) const {
    if (!(value > 0 && value <= most)) {
      return Invalid("field '{}' of {} arrivals must be above 0 and at most {}, got {}", name, ArrivalKindName(kind),
                     most, value);
    }
    return {};
  }
  [[nodiscard]] Status Seconds() const { return Between(kMinSeconds, kMaxSeconds); }
};

Status CheckRate(double rate) {
  if (!std::isfinite(rate) || rate <= 0 || rate > kMaxRate) {
    return Invalid("rate must be above 0 and at most {} requests per second, got {}", kMaxRate, rate);
  }
  return {};
}

Status CheckBursty(const BurstyRate& bursty) {
  const auto field = [](const char* name, double value) { return Field{ArrivalKind::kBursty, name, value}; };
  TANDEM_TRY(field("on", bursty.on).AboveZero(kMaxRate));
  TANDEM_TRY(field("off", bursty.off).Between(0, kMaxRate));
  TANDEM_TRY(field("on_s", bursty.on_s).Seconds());
  TANDEM_TRY(field("off_s", bursty.off_s).Seconds());
  const double requests = bursty.on * bursty.on_s + bursty.off * bursty.off_s;
  if (requests < kMinCycleRequests) {
    return Invalid("bursty arrivals must hold at least {} requests in on_s and off_s together, got {}",
                   kMinCycleRequests, requests);
  }
  return {};
}

Status CheckRamp(const RampRate& ramp) {
  const auto field = [](const char* name, double value) { return Field{ArrivalKind::kRamp, name, value}; };
  TANDEM_TRY(field("from", ramp.from).Between(0, kMaxRate));
  TANDEM_TRY(field("to", ramp.to).Between(0, kMaxRate));
  if (ramp.from == 0 && ramp.to == 0) return Invalid("fields 'from' and 'to' of ramp arrivals must not both be 0");
  if (ramp.over_s) TANDEM_TRY(field("over_s", *ramp.over_s).Seconds());
  return {};
}

Status CheckSteps(const std::vector<RateStep>& steps) {
  if (steps.empty() || steps.size() > kMaxSteps) {
    return Invalid("steps arrivals must have between 1 and {} steps, got {}", kMaxSteps, steps.size());
  }
  bool silent = true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto field = [&](std::string_view part, double value) {
      return Field{ArrivalKind::kSteps, Format("{} of step {}", part, i + 1), value};
    };
    TANDEM_TRY(field("rate", steps[i].rate).Between(0, kMaxRate));
    TANDEM_TRY(field("seconds", steps[i].seconds).Seconds());
    silent = silent && steps[i].rate == 0;
  }
  if (silent) return Invalid("the rates of steps arrivals must not all be 0");
  return {};
}

Status CheckDiurnal(const DiurnalRate& diurnal) {
  const auto field = [](const char* name, double value) { return Field{ArrivalKind::kDiurnal, name, value}; };
  TANDEM_TRY(field("mean", diurnal.mean).AboveZero(kMaxRate));
  TANDEM_TRY(field("swing", diurnal.swing).Between(0, 1));
  return field("period_s", diurnal.period_s).Seconds();
}

}  // namespace

std::string_view ArrivalKindName(ArrivalKind kind) {
  switch (kind) {
    case ArrivalKind::kPoisson: return "poisson";
    case ArrivalKind::kConstant: return "constant";
    case ArrivalKind::kClosed: return "closed";
    case ArrivalKind::kBursty: return "bursty";
    case ArrivalKind::kRamp: return "ramp";
    case ArrivalKind::kSteps: return "steps";
    case ArrivalKind::kDiurnal: return "diurnal";
    case ArrivalKind::kTrace: return "trace";
  }
  return "unknown";
}

Status CheckArrivals(const ArrivalSpec& spec) {
  switch (spec.kind) {
    case ArrivalKind::kPoisson:
    case ArrivalKind::kConstant: return CheckRate(spec.rate);
    case ArrivalKind::kClosed:
      if (spec.users < 1 || spec.users > kMaxUsers) {
        return Invalid("users must be between 1 and {}, got {}", kMaxUsers, spec.users);
      }
      return {};
    case ArrivalKind::kBursty: return CheckBursty(spec.bursty);
    case ArrivalKind::kRamp: return CheckRamp(spec.ramp);
    case ArrivalKind::kSteps: return CheckSteps(spec.steps);
    case ArrivalKind::kDiurnal: return CheckDiurnal(spec.diurnal);
    case ArrivalKind::kTrace: return {};
  }
  return Invalid("there is no kind of arrivals {}", static_cast<int>(spec.kind));
}

}  // namespace tandem::loadgen
