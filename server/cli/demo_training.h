#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "server/cli/api_client.h"
#include "server/cli/train_progress.h"
#include "server/cli/train_watch.h"

namespace tandem::cli {

// A training job as it was last seen.
struct TrainingStatus {
  JobView job;
  std::optional<double> steps_per_second;  // From the first step seen to the last.
  std::vector<double> losses;              // From the first step to the last evaluation, as the server keeps them.
  std::vector<double> accuracies;
  bool decided = false;  // It has ended, and whether its result is served is known.
  std::string problem;   // Why no new version is served; once decided, and empty when one is.
};

// What the demo's job says: the model `digits` trained on `data` (below the data root) for so many steps, and published
// if it got better, or never.
[[nodiscard]] std::string DigitsJob(const std::string& data, int steps, bool publish);

// Submits a training job over the API and watches it from a thread of its own until its end and its publication. Other
// calls from any thread.
class DemoTraining {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DemoTraining>> Submit(int port, const std::string& job);
  // Stops watching; the job goes on.
  ~DemoTraining() = default;
  DemoTraining(const DemoTraining&) = delete;
  DemoTraining& operator=(const DemoTraining&) = delete;

  // Becomes true when the status is decided.
  [[nodiscard]] const std::atomic<bool>& decided() const { return decided_; }
  [[nodiscard]] TrainingStatus Seen() const;

 private:
  DemoTraining(std::unique_ptr<ApiClient> client, JobView job);
  void Watch(const std::stop_token& stop);
  // Whether there is nothing more to be seen.
  [[nodiscard]] bool Look();
  void TakeIn(const JobView& job);
  [[nodiscard]] Status ReadSeries(std::int64_t job);
  void Decide(std::string problem);

  // The watching thread only.
  const std::unique_ptr<ApiClient> client_;
  Patience patience_;
  struct FirstStep {
    MonotonicTime time;
    std::int64_t step = 0;
  };
  std::optional<FirstStep> first_;

  std::atomic<bool> decided_{false};
  mutable Mutex mu_;
  TrainingStatus seen_ GUARDED_BY(mu_);
  std::jthread watcher_;  // Last: it uses the above.
};

}  // namespace tandem::cli
