#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "api/base/mutex.h"

namespace tandem {

// What a run of one version takes of memory at its largest batch: a guess until one was made, then what runs have
// taken. Sessions tell of their runs, and whoever counts memory hears what is expected of the largest. Shared by these.
// Thread-safe.
class RunBytes {
 public:
  using Changed = std::function<void(std::uint64_t)>;

  // A run whose inputs had so many bytes has taken so many. Cheap unless it is news; then calls `changed`.
  void Observe(std::uint64_t input, std::uint64_t taken);
  // From now on `changed` hears what is expected, at once if runs were made already, on the thread of whoever has news;
  // it must not block. `guess` holds until then. `largest_input` is that of the largest batch; a run whose inputs are
  // smaller says how much that takes in proportion.
  void Listen(std::uint64_t guess, std::uint64_t largest_input, Changed changed);

  [[nodiscard]] std::uint64_t Expected() const;

 private:
  [[nodiscard]] std::uint64_t ExpectedLocked() const REQUIRES(mu_);
  void Tell();

  // Of the run with the largest inputs, and the most of any: to pass over what is no news.
  std::atomic<std::uint64_t> input_{0};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> most_{0};

  mutable Mutex mu_;
  std::uint64_t guess_ GUARDED_BY(mu_) = 0;
  std::uint64_t largest_input_ GUARDED_BY(mu_) = 0;
  Changed changed_ GUARDED_BY(mu_);
};

}  // namespace tandem
