#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tandem {

// Tells which runs of a model version are so short that handing them to another thread would cost more than they do.
// Judged by what runs over inputs of about the same size have taken. Thread-safe, without locks: of two observations at
// once, one may be lost.
class ShortRuns {
 public:
  // Waking a sleeping thread twice takes about as long.
  static constexpr std::chrono::microseconds kShort{200};
  // No mere interruption of the thread: the model's time depends on more than the size of its input.
  static constexpr std::chrono::milliseconds kLong{5};
  // So many runs in a row must have been short before the next is expected to be, and after a long one so many.
  static constexpr std::int32_t kProof = 16;
  static constexpr std::int32_t kProofAfterLong = 1000;

  ShortRuns();

  [[nodiscard]] bool Expects(std::size_t input_bytes) const;
  void Observe(std::size_t input_bytes, std::chrono::nanoseconds took);

 private:
  // One for each number of bits that a size can have.
  static constexpr std::size_t kSizeClasses = 65;

  std::array<std::atomic<std::int32_t>, kSizeClasses> still_to_prove_;
};

}  // namespace tandem
