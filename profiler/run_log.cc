#include "profiler/run_log.h"

#include <algorithm>

namespace tandem {

void RunLog::Watch(bool watched) {
  if (watched_.load(std::memory_order_relaxed) == watched) return;
  const MutexLock lock(mu_);
  if (watched) samples_.reserve(kMostSamples);
  if (!watched) {
    samples_.clear();
    models_.clear();
  }
  watched_.store(watched, std::memory_order_relaxed);
}

void RunLog::Add(std::string_view model, MonotonicTime ended, std::chrono::nanoseconds took,
                 std::chrono::nanoseconds typical) {
  if (!watched_.load(std::memory_order_relaxed) || typical.count() <= 0 || took.count() <= 0) return;
  const MutexLock lock(mu_);
  if (samples_.size() >= kMostSamples) return;
  const auto found = std::ranges::find(models_, model);
  const auto place = static_cast<std::size_t>(found - models_.begin());
  if (found == models_.end()) {
    if (models_.size() >= kMostModels) return;
    models_.emplace_back(model);
  }
  samples_.push_back({.model = place,
                      .began = ended - took,
                      .ended = ended,
                      .ratio = static_cast<double>(took.count()) / static_cast<double>(typical.count())});
}

std::vector<RunSample> RunLog::Take() {
  std::vector<Sample> samples;
  samples.reserve(kMostSamples);
  std::vector<std::string> models;
  {
    const MutexLock lock(mu_);
    samples.swap(samples_);
    models = models_;
  }
  std::vector<RunSample> taken;
  taken.reserve(samples.size());
  for (const Sample& sample : samples) {
    taken.push_back(
        {.model = models[sample.model], .began = sample.began, .ended = sample.ended, .ratio = sample.ratio});
  }
  return taken;
}

}  // namespace tandem
