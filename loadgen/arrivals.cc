#include "loadgen/arrivals.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

class PoissonArrivals final : public ArrivalProcess {
 public:
  PoissonArrivals(double rate, std::uint64_t seed) : mean_gap_ns_(1e9 / rate), random_(seed) {}

  std::optional<nanoseconds> Next() override {
    // By hand, since std::exponential_distribution gives other values in another library.
    const double uniform = static_cast<double>(random_() >> 11) * 0x1p-53;
    at_ns_ -= std::log1p(-uniform) * mean_gap_ns_;
    return nanoseconds(static_cast<std::int64_t>(at_ns_));
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
    return nanoseconds(static_cast<std::int64_t>(gap_ns_ * static_cast<long double>(count_++)));
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

}  // namespace

Result<std::unique_ptr<ArrivalProcess>> MakeArrivals(const ArrivalSpec& spec, std::uint64_t seed) {
  if (spec.kind == ArrivalKind::kClosed) {
    if (spec.users < 1 || spec.users > kMaxUsers) {
      return Invalid("users must be between 1 and {}, got {}", kMaxUsers, spec.users);
    }
    return std::make_unique<ClosedLoop>(spec.users);
  }
  if (!std::isfinite(spec.rate) || spec.rate <= 0 || spec.rate > kMaxRate) {
    return Invalid("rate must be above 0 and at most {} requests per second, got {}", kMaxRate, spec.rate);
  }
  if (spec.kind == ArrivalKind::kPoisson) return std::make_unique<PoissonArrivals>(spec.rate, seed);
  return std::make_unique<ConstantArrivals>(spec.rate);
}

}  // namespace tandem::loadgen
