#pragma once

#include <filesystem>

#include "api/base/result.h"

namespace tandem::jobs {

// The right to use a state directory, for as long as this lives: two servers on one would run every job twice. The
// kernel gives it back when the process ends in whatever way. Movable; used by one thread.
class StateLock {
 public:
  // kConflict, naming the process that holds it, when another has it. Creates the directory, for its owner alone, when
  // it is not there.
  [[nodiscard]] static Result<StateLock> Acquire(const std::filesystem::path& directory);
  ~StateLock();
  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&&) = delete;
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  explicit StateLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;  // Owned; -1 when moved from. Closed on exec, so that no trainer keeps the lock.
};

}  // namespace tandem::jobs
