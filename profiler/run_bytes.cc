#include "profiler/run_bytes.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

// No run takes so much, and no product of two numbers below overflows with it.
constexpr std::uint64_t kMost = std::uint64_t{1} << 48;

}  // namespace

void RunBytes::Observe(std::uint64_t input, std::uint64_t taken) {
  taken = std::min(taken, kMost);
  const std::uint64_t known = input_.load(std::memory_order_relaxed);
  const bool larger = input > known || (input == known && taken > taken_.load(std::memory_order_relaxed));
  if (taken == 0 || (!larger && taken <= most_.load(std::memory_order_relaxed))) return;
  {
    const MutexLock lock(mu_);
    most_ = std::max(most_.load(), taken);
    if (input > input_ || (input == input_ && taken > taken_)) {
      input_ = input;
      taken_ = taken;
    }
  }
  Tell();
}

void RunBytes::Listen(std::uint64_t guess, std::uint64_t largest_input, Changed changed) {
  {
    const MutexLock lock(mu_);
    guess_ = guess;
    largest_input_ = largest_input;
    changed_ = std::move(changed);
  }
  if (most_ > 0) Tell();
}

std::uint64_t RunBytes::Expected() const {
  const MutexLock lock(mu_);
  return ExpectedLocked();
}

std::uint64_t RunBytes::ExpectedLocked() const {
  if (most_ == 0) return guess_;
  const std::uint64_t input = std::max<std::uint64_t>(input_, 1);
  const std::uint64_t times = largest_input_ / input + (largest_input_ % input > 0 ? 1 : 0);
  const std::uint64_t at_largest = times > kMost / taken_ ? kMost : taken_ * std::max<std::uint64_t>(times, 1);
  return std::max(at_largest, most_.load());
}

void RunBytes::Tell() {
  // Told again when there was news meanwhile: whoever is told last is told what holds.
  for (std::uint64_t told = 0, expected = Expected(); told != expected; expected = Expected()) {
    Changed changed;
    {
      const MutexLock lock(mu_);
      changed = changed_;
    }
    if (!changed) return;
    changed(expected);
    told = expected;
  }
}

}  // namespace tandem
