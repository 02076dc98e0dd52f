#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "colocation/period_clock.h"
#include "colocation/policy.h"
#include "profiler/cpu_limits.h"

namespace tandem {

// Whether training is to be paced by the limit on a machine of so many cores. Limits of very short periods are left
// alone: nobody is throttled for longer than that.
[[nodiscard]] bool Binds(const CpuLimit& limit, int cores);

// Keeps the books of one CPU limit: what of its period's time is left, and for how long that has to last. What is told
// errs towards less. Used by one thread.
class QuotaLedger {
 public:
  // Periods are taken to begin so much before they do, so that training stops in time.
  static constexpr std::chrono::microseconds kLead{300};

  // CPU time of the server. The group's own count lags behind by what its threads have used since the last tick.
  using ServerUse = std::function<std::chrono::nanoseconds()>;

  // `cores` is how many can use the time at once, whoever uses it. Borrows the clock.
  QuotaLedger(std::unique_ptr<CpuLimitMeter> meter, const Clock& clock, int cores, ServerUse server_use)
      : meter_(std::move(meter)), clock_(clock), cores_(cores), server_use_(std::move(server_use)) {}

  // Reads what was used.
  void Look();

  // As of the last look; nullopt while nothing binds, or nothing is known.
  [[nodiscard]] const std::optional<QuotaView>& view() const { return view_; }
  // A period has just begun: what was used before it is known better in a moment, when whoever was stopped then has
  // left its core and is counted.
  [[nodiscard]] bool fresh() const { return fresh_; }
  // The limit can bind, but when its periods begin is not known: look often.
  [[nodiscard]] bool learning() const { return limit_ && !period_clock_->known(); }

  // For people.
  [[nodiscard]] std::string name() const { return meter_->name(); }
  [[nodiscard]] const std::optional<CpuLimit>& limit() const { return limit_; }
  [[nodiscard]] std::uint64_t throttled() const { return throttled_; }

 private:
  void ReadLimit(MonotonicTime now);
  // What was used, and near the beginning of a period how many there were: those counts tell when the next ones begin.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> ReadUse(MonotonicTime now);

  // Constant after construction.
  const std::unique_ptr<CpuLimitMeter> meter_;
  const Clock& clock_;
  const int cores_;
  const ServerUse server_use_;

  std::optional<CpuLimit> limit_;  // Nullopt: there is none, or it does not bind.
  std::optional<MonotonicTime> limit_read_;
  std::optional<PeriodClock> period_clock_;
  std::optional<MonotonicTime> period_ends_;
  // Before the period began, or less: by all in the group, and by the server.
  std::chrono::nanoseconds used_before_{0};
  std::chrono::nanoseconds served_before_{0};
  bool fresh_ = false;
  // Of the last look.
  MonotonicTime looked_;
  std::chrono::nanoseconds used_{0};
  std::chrono::nanoseconds served_{0};
  std::optional<QuotaView> view_;
  std::uint64_t throttled_ = 0;
};

}  // namespace tandem
