#include "server/trainer/trainer_log.h"

#include <chrono>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/trainer/write_all.h"

namespace tandem {
namespace {

constexpr std::size_t kMostBytes = 2000;  // Of one line.

// "1 thread", "800 examples".
std::string Count(std::int64_t count, std::string_view what) {
  return Format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

void TrainerLog::WriteLine(std::string_view text) {
  std::string line = Format("{:%FT%TZ} ", std::chrono::floor<std::chrono::seconds>(clock_.WallNow()));
  if (left_out_ > 0) line += Format("({} left out) ", Count(std::exchange(left_out_, 0), "line"));
  line += text.substr(0, kMostBytes);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  line += '\n';
  WriteAll(fd_, line);
}

void TrainerLog::Write(std::string_view text) {
  const MutexLock lock(mu_);
  WriteLine(text);
}

void TrainerLog::WriteOften(std::string_view text) {
  const MonotonicTime now = clock_.Now();
  const MutexLock lock(mu_);
  if (lines_ >= kFreeLines && now < next_often_) {
    ++left_out_;
    return;
  }
  if (lines_ < kFreeLines) ++lines_;
  next_often_ = now + kBetween;
  WriteLine(text);
}

void TrainerLog::OnRun(const TrainerRun& run) {
  const TrainingJob& job = run.job;
  const std::string version = job.model_version.empty() ? "" : " version " + job.model_version;
  const std::string what = run.measure_only    ? "measures a model"
                           : run.estimate_only ? "estimates a job"
                                               : Format("job {}", run.number);
  const std::string name = job.name.empty() ? "" : " " + JsonString(job.name);
  Write(Format("{}{}: model {}{}, {}", what, name, job.model, version, Count(run.threads, "thread")));
}

void TrainerLog::OnPlan(const Plan& plan) {
  total_steps_ = plan.total_steps;
  next_step_ = clock_.Now() + kBetween;
  Write(Format("{} of {} are trained, on {}; evaluated on {}", plan.parameters,
               Count(plan.model_parameters, "parameter"), Count(plan.examples, "example"),
               plan.evaluation_examples > 0 ? Count(plan.evaluation_examples, "other") : "none"));
  Write(Format("{} step {} of {}", plan.first_step > 0 ? "goes on from" : "begins at", plan.first_step,
               plan.total_steps));
  next_.OnPlan(plan);
}

void TrainerLog::OnStep(const Step& step) {
  if (const MonotonicTime now = clock_.Now(); now >= next_step_) {
    next_step_ = now + kBetween;
    Write(Format("step {} of {}: epoch {}, loss {:.6g}, learning rate {:.6g}", step.step, total_steps_, step.epoch,
                 step.loss, step.learning_rate));
  }
  next_.OnStep(step);
}

void TrainerLog::OnEvaluation(const Evaluation& evaluation) {
  const std::string accuracy = evaluation.accuracy ? Format(", accuracy {:.6g}", *evaluation.accuracy) : "";
  WriteOften(Format("evaluation at step {}: loss {:.6g}{}{}", evaluation.step, evaluation.loss, accuracy,
                    evaluation.best ? ", the best so far" : ""));
  next_.OnEvaluation(evaluation);
}

void TrainerLog::OnCheckpoint(const training::SavedCheckpoint& saved) {
  if (saved.size) {
    WriteOften(
        Format("checkpoint at step {}: {}", saved.step, Count(static_cast<std::int64_t>(saved.size->bytes), "byte")));
  } else {
    WriteOften(Format("no checkpoint at step {}: {}", saved.step, saved.size.error().message));
  }
  next_.OnCheckpoint(saved);
}

void TrainerLog::OnSkippedCheckpoint(const std::filesystem::path& file, const Error& why) {
  Write(Format("{} is passed over: {}", file.filename().string(), why.message));
  next_.OnSkippedCheckpoint(file, why);
}

void TrainerLog::OnMemory(const MemoryUse& use) {
  Write(
      Format("memory as measured: {} bytes as long as it runs, and {} more in a step", use.persistent, use.ephemeral));
  next_.OnMemory(use);
}

void TrainerLog::OnEstimate(const MemoryEstimate& estimate) {
  Write(Format("memory as estimated: {} bytes as long as it runs, and {} more in a step, the most of it at {}",
               estimate.persistent.total(), estimate.ephemeral, estimate.peak));
  if (!estimate.fit) return;
  Write(
      Format("fitted: {} bytes would be held if nothing was computed again, {} at least; a step takes {:.1f} % longer",
             estimate.fit->kept, estimate.fit->least, 100 * estimate.fit->slowdown));
}

void TrainerLog::OnNoEstimate(const Error& why) {
  Write("memory cannot be estimated: " + why.message);
}

void TrainerLog::OnEnd(const EndEvent& end) {
  switch (end.outcome) {
    case TrainerOutcome::kFinished: return Write(Format("finished at step {}", end.step));
    case TrainerOutcome::kStoppedEarly:
      return Write(Format("stopped early at step {}: evaluations were no longer better", end.step));
    case TrainerOutcome::kInterrupted:
      return Write(Format("interrupted at step {}; goes on from its checkpoint", end.step));
    case TrainerOutcome::kFailed: return Write("failed: " + end.error.message);
  }
}

}  // namespace tandem
