#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "api/base/result.h"
#include "loadgen/arrival_spec.h"

namespace tandem::loadgen {

// Says when requests are due. Pure: times are counted from the start of the run, no clock is read, and the same
// parameters give the same times. Used by one thread, the generator's.
class ArrivalProcess {
 public:
  virtual ~ArrivalProcess() = default;

  // The time of the next arrival, never before the one returned last. Nothing when it depends on a request that is
  // still under way; in an open loop, when no more will come.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> Next() = 0;

  // The batch size of the arrival that Next() returned last.
  [[nodiscard]] virtual std::uint32_t batch() const { return 1; }

  // A request was finished; `free_at` is when the user behind it is free again.
  virtual void Completed(std::chrono::nanoseconds free_at) { (void)free_at; }

  // In an open loop latency counts from the scheduled time, whatever the server does. In a closed loop a user sends
  // only after an answer, and latency counts from the send.
  [[nodiscard]] virtual bool open_loop() const { return true; }
};

// `seed` matters only to random kinds, `run` (warm-up included) only to a ramp that goes over the whole run. A spec
// that makes no sense is kInvalidArgument.
[[nodiscard]] Result<std::unique_ptr<ArrivalProcess>> MakeArrivals(
    const ArrivalSpec& spec, std::uint64_t seed, std::optional<std::chrono::nanoseconds> run = std::nullopt);

}  // namespace tandem::loadgen
