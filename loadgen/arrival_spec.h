#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/result.h"
#include "loadgen/rate_curve.h"
#include "loadgen/trace.h"

namespace tandem::loadgen {

enum class ArrivalKind : std::uint8_t { kPoisson, kConstant, kClosed, kBursty, kRamp, kSteps, kDiurnal, kTrace };

// As in the text form (arrival_text.h).
[[nodiscard]] std::string_view ArrivalKindName(ArrivalKind kind);

// Bursts and lulls that take turns; how long each lasts is exponentially distributed. Which of the two a run starts in
// is drawn by their share of the time, so that the mean rate is the same at every moment.
struct BurstyRate {
  double on = 0, off = 0;      // Requests per second in a burst and in a lull; a lull may be silent.
  double on_s = 0, off_s = 0;  // What each lasts on average.
};

// What belongs to another kind is not looked at.
struct ArrivalSpec {
  ArrivalKind kind = ArrivalKind::kPoisson;
  double rate = 0;  // Requests per second; kPoisson and kConstant.
  int users = 0;    // Closed loop only.
  BurstyRate bursty;
  RampRate ramp;
  std::vector<RateStep> steps;  // The last one is held.
  DiurnalRate diurnal;
  std::string trace_file;                    // As named by a text; whoever reads it sets `trace`.
  std::shared_ptr<const TraceStream> trace;  // Shared: copies of a spec replay the same rows.

  [[nodiscard]] static ArrivalSpec Poisson(double rate) { return {.kind = ArrivalKind::kPoisson, .rate = rate}; }
  [[nodiscard]] static ArrivalSpec Constant(double rate) { return {.kind = ArrivalKind::kConstant, .rate = rate}; }
  [[nodiscard]] static ArrivalSpec Closed(int users) { return {.kind = ArrivalKind::kClosed, .users = users}; }
  [[nodiscard]] static ArrivalSpec Bursty(BurstyRate bursty) {
    return {.kind = ArrivalKind::kBursty, .bursty = bursty};
  }
  [[nodiscard]] static ArrivalSpec Ramp(RampRate ramp) { return {.kind = ArrivalKind::kRamp, .ramp = ramp}; }
  [[nodiscard]] static ArrivalSpec Steps(std::vector<RateStep> steps) {
    return {.kind = ArrivalKind::kSteps, .steps = std::move(steps)};
  }
  [[nodiscard]] static ArrivalSpec Diurnal(DiurnalRate diurnal) {
    return {.kind = ArrivalKind::kDiurnal, .diurnal = diurnal};
  }
  [[nodiscard]] static ArrivalSpec Replay(std::shared_ptr<const TraceStream> trace) {
    return {.kind = ArrivalKind::kTrace, .trace = std::move(trace)};
  }
};

inline constexpr double kMaxRate = 1e7;
inline constexpr int kMaxUsers = 100'000;
// Of a ramp, a step, a period, the mean of a phase; the latest time of a trace.
inline constexpr double kMinSeconds = 1e-3;
inline constexpr double kMaxSeconds = 1e7;
inline constexpr std::size_t kMaxSteps = 10'000;
// A burst and a lull together hold at least so many requests on average: below, the next one is long to look for.
inline constexpr double kMinCycleRequests = 1e-3;

// What makes no sense is kInvalidArgument, with the field and the value. The rows of a trace are not looked at.
[[nodiscard]] Status CheckArrivals(const ArrivalSpec& spec);

}  // namespace tandem::loadgen
