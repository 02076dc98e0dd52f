#pragma once

#include <string>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/wire/trainer_event.h"
#include "runtimes/training/trainer/trainer.h"

namespace tandem {

// Tells the server what a run does, over the pipe it was started with. Of steps that follow one another closely only
// some are told. When nobody reads any more it is silent: the run ends with the server anyway. Thread-safe.
class EventPipe final : public training::TrainerListener {
 public:
  // Borrows the clock; the descriptor stays the caller's.
  EventPipe(int fd, const Clock& clock) : fd_(fd), clock_(clock) {}

  void OnPlan(const Plan& plan) override;
  void OnStep(const Step& step) override;
  void OnEvaluation(const Evaluation& evaluation) override;
  void OnCheckpoint(const training::SavedCheckpoint& saved) override;
  void OnSkippedCheckpoint(const std::filesystem::path& file, const Error& why) override;
  void OnMemory(const MemoryUse& use) override;
  void OnEstimate(const MemoryEstimate& estimate);
  void OnEnd(EndEvent end);

 private:
  void Send(const TrainerEvent& event) EXCLUDES(mu_);

  // Constant after construction.
  const int fd_;
  const Clock& clock_;
  // Training thread only.
  std::int64_t total_steps_ = 0;
  MonotonicTime next_step_{};

  Mutex mu_;  // Lines are written whole.
};

}  // namespace tandem
