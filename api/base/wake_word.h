#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace tandem {

// Something that one thread waits for and others tell of, without a lock between them. Thread-safe.
class WakeWord {
 public:
  // What to hand to Wait(): whatever is told after this call ends the wait.
  [[nodiscard]] std::uint32_t seen() const { return word_.load(); }
  void Notify();
  // Returns when something was told since `seen`, when the time is over (nullopt: never), or for no reason.
  void Wait(std::uint32_t seen, std::optional<std::chrono::nanoseconds> at_most);

 private:
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace tandem
