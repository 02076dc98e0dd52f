#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>

namespace tandem::repository {

// Holds an immutable value that many threads read and few replace. Thread-safe.
//
// A shared lock around a pointer, because it costs a reader the same as std::atomic<std::shared_ptr> (30 to 50 ns of
// CPU with 1 to 4 threads on two cores) and that one spins: a reader that is preempted inside it would have the others
// burn their time slices. Here readers never wait for each other.
template <typename T>
class SnapshotCell {
 public:
  explicit SnapshotCell(std::shared_ptr<const T> value) : value_(std::move(value)) {}

  [[nodiscard]] std::shared_ptr<const T> Load() const {
    const std::shared_lock lock(mu_);
    return value_;
  }

  // Gives back the value that was replaced, so that the caller decides where it is let go of.
  std::shared_ptr<const T> Exchange(std::shared_ptr<const T> value) {
    const std::scoped_lock lock(mu_);
    return std::exchange(value_, std::move(value));
  }

 private:
  mutable std::shared_mutex mu_;
  std::shared_ptr<const T> value_;  // Guarded by mu_.
};

}  // namespace tandem::repository
