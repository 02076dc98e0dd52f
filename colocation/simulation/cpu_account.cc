#include "colocation/simulation/cpu_account.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tandem::simulation {
namespace {

class AccountMeter final : public CpuLimitMeter {
 public:
  explicit AccountMeter(const CpuAccount& account) : account_(account) {}
  [[nodiscard]] std::string name() const override { return "simulated"; }
  [[nodiscard]] std::optional<CpuLimit> Limit() override { return account_.limit(); }
  [[nodiscard]] Result<CpuUse> Use() override { return account_.use(); }

 private:
  const CpuAccount& account_;
};

}  // namespace

void CpuAccount::Use(double time) {
  const bool had = !dry();
  left_ -= time;
  used_ += time;
  used_in_period_ += time;
  most_used_ = std::max(most_used_, used_in_period_);
  if (had && dry()) ++throttled_;
}

void CpuAccount::Refill(Time now) {
  if (now < refill_) return;
  left_ = static_cast<double>(limit_.quota.count());
  used_in_period_ = 0;
  refill_ += limit_.period.count();
  ++periods_;
}

CpuUse CpuAccount::use() const {
  return {.used = std::chrono::nanoseconds(std::llround(used_)), .periods = periods_, .throttled = throttled_};
}

std::unique_ptr<CpuLimitMeter> MeterOf(const CpuAccount& account) {
  return std::make_unique<AccountMeter>(account);
}

}  // namespace tandem::simulation
