#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "colocation/simulation/event_clock.h"
#include "profiler/cpu_limits.h"

namespace tandem::simulation {

// A control group's CPU time as the kernel keeps it: so much in every period; when it is used up everything stands
// still until the next one begins. Used by one thread.
class CpuAccount {
 public:
  explicit CpuAccount(CpuLimit limit)
      : limit_(limit), left_(static_cast<double>(limit.quota.count())), refill_(limit.period.count()) {}

  [[nodiscard]] bool dry() const { return left_ < 1; }
  // When a period begins, or what is left is used up at this rate.
  [[nodiscard]] Time NextEvent(Time now, double cores) const {
    return dry() ? refill_ : std::min(refill_, UsedUpAt(now, left_, cores));
  }
  // So much was used since the last call.
  void Use(double time);
  // Begins a period when its time has come.
  void Refill(Time now);

  [[nodiscard]] const CpuLimit& limit() const { return limit_; }
  [[nodiscard]] CpuUse use() const;
  [[nodiscard]] double most_used() const { return most_used_; }

 private:
  // Constant after construction.
  const CpuLimit limit_;

  double left_;
  double used_ = 0;
  double used_in_period_ = 0;
  double most_used_ = 0;  // In any period.
  Time refill_;
  std::uint64_t periods_ = 1;
  std::uint64_t throttled_ = 0;
};

// For parts of the server. Borrows the account.
[[nodiscard]] std::unique_ptr<CpuLimitMeter> MeterOf(const CpuAccount& account);

}  // namespace tandem::simulation
