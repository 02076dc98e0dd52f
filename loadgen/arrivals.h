#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "api/base/result.h"

namespace tandem::loadgen {

// Says when requests are due. Pure: times are counted from the start of the run, no clock is read, and the same
// parameters give the same times. Used by one thread, the generator's.
class ArrivalProcess {
 public:
  virtual ~ArrivalProcess() = default;

  // The time of the next arrival, never before the one returned last. Nothing when it depends on a request that is
  // still under way.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> Next() = 0;

  // A request was finished; `free_at` is when the user behind it is free again.
  virtual void Completed(std::chrono::nanoseconds free_at) { (void)free_at; }

  // In an open loop latency counts from the scheduled time, whatever the server does. In a closed loop a user sends
  // only after an answer, and latency counts from the send.
  [[nodiscard]] virtual bool open_loop() const { return true; }
};

enum class ArrivalKind : std::uint8_t { kPoisson, kConstant, kClosed };

struct ArrivalSpec {
  ArrivalKind kind = ArrivalKind::kPoisson;
  double rate = 0;  // Requests per second; open loops only.
  int users = 0;    // Closed loop only.

  [[nodiscard]] static ArrivalSpec Poisson(double rate) { return {.kind = ArrivalKind::kPoisson, .rate = rate}; }
  [[nodiscard]] static ArrivalSpec Constant(double rate) { return {.kind = ArrivalKind::kConstant, .rate = rate}; }
  [[nodiscard]] static ArrivalSpec Closed(int users) { return {.kind = ArrivalKind::kClosed, .users = users}; }
};

inline constexpr double kMaxRate = 1e7;
inline constexpr int kMaxUsers = 100'000;

// `seed` matters only to random kinds. A rate or a number of users that makes no sense is kInvalidArgument.
[[nodiscard]] Result<std::unique_ptr<ArrivalProcess>> MakeArrivals(const ArrivalSpec& spec, std::uint64_t seed);

}  // namespace tandem::loadgen
