#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"

namespace tandem {

// A run of requests that has ended.
struct RunSample {
  std::string model;
  MonotonicTime began;
  MonotonicTime ended;
  double ratio = 1;  // To what such a run typically takes.
};

// Hands samples of runs from those who run requests to whoever watches what training does to them. Fixed memory but for
// the names of models; costs next to nothing while nobody watches. Thread-safe.
class RunLog {
 public:
  // More that come between two calls of Take() are passed over; models beyond the bound are, too.
  static constexpr std::size_t kMostSamples = 2048;
  static constexpr std::size_t kMostModels = 256;

  // Whether anybody watches.
  void Watch(bool watched) EXCLUDES(mu_);
  void Add(std::string_view model, MonotonicTime ended, std::chrono::nanoseconds took, std::chrono::nanoseconds typical)
      EXCLUDES(mu_);
  // What has come since the last call.
  [[nodiscard]] std::vector<RunSample> Take() EXCLUDES(mu_);

 private:
  struct Sample {
    std::size_t model;
    MonotonicTime began;
    MonotonicTime ended;
    double ratio;
  };

  std::atomic<bool> watched_{false};
  Mutex mu_;
  std::vector<std::string> models_ GUARDED_BY(mu_);
  std::vector<Sample> samples_ GUARDED_BY(mu_);
};

}  // namespace tandem
