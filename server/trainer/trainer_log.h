#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/wire/trainer_event.h"
#include "runtimes/training/trainer/trainer.h"
#include "server/trainer/run_file.h"

namespace tandem {

// A run told to people: lines with the time of day, which are the job's log. Stands before another listener and hands
// everything on to it. Steps are told every kBetween at most; evaluations and checkpoints each, and beyond
// kFreeLines lines no more often either, so that a log grows slowly however short its steps are. What cannot be
// written is lost. Thread-safe.
class TrainerLog final : public training::TrainerListener {
 public:
  static constexpr std::chrono::seconds kBetween{10};
  static constexpr int kFreeLines = 1000;

  // Borrows the clock and the listener; the descriptor stays the caller's.
  TrainerLog(int fd, const Clock& clock, training::TrainerListener& next) : fd_(fd), clock_(clock), next_(next) {}

  void OnRun(const TrainerRun& run);
  void OnPlan(const Plan& plan) override;
  void OnStep(const Step& step) override;
  void OnEvaluation(const Evaluation& evaluation) override;
  void OnCheckpoint(const training::SavedCheckpoint& saved) override;
  void OnSkippedCheckpoint(const std::filesystem::path& file, const Error& why) override;
  void OnMemory(const MemoryUse& use) override;
  void OnEstimate(const MemoryEstimate& estimate);
  // The job is run all the same.
  void OnNoEstimate(const Error& why);
  void OnEnd(const EndEvent& end);

 private:
  void Write(std::string_view text) EXCLUDES(mu_);
  // The same for what may come often.
  void WriteOften(std::string_view text) EXCLUDES(mu_);
  void WriteLine(std::string_view text) REQUIRES(mu_);

  // Constant after construction.
  const int fd_;
  const Clock& clock_;
  training::TrainerListener& next_;
  // Training thread only.
  std::int64_t total_steps_ = 0;
  MonotonicTime next_step_{};

  Mutex mu_;  // Lines are written whole.
  int lines_ GUARDED_BY(mu_) = 0;
  std::int64_t left_out_ GUARDED_BY(mu_) = 0;  // Since the last line.
  MonotonicTime next_often_ GUARDED_BY(mu_){};
};

}  // namespace tandem
