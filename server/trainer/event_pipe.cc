#include "server/trainer/event_pipe.h"

#include <chrono>
#include <utility>

#include "server/trainer/write_all.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kBetweenSteps{100};

}  // namespace

void EventPipe::Send(const TrainerEvent& event) {
  const std::string line = ToLine(event) + "\n";
  const MutexLock lock(mu_);
  WriteAll(fd_, line);
}

void EventPipe::OnPlan(const Plan& plan) {
  total_steps_ = plan.total_steps;
  Send(PlanEvent{.first_step = plan.first_step,
                 .total_steps = plan.total_steps,
                 .examples = plan.examples,
                 .evaluation_examples = plan.evaluation_examples,
                 .parameters = plan.parameters});
}

void EventPipe::OnStep(const Step& step) {
  const MonotonicTime now = clock_.Now();
  if (now < next_step_ && step.step != total_steps_) return;
  next_step_ = now + kBetweenSteps;
  Send(StepEvent{.step = step.step, .epoch = step.epoch, .loss = step.loss, .learning_rate = step.learning_rate});
}

void EventPipe::OnEvaluation(const Evaluation& evaluation) {
  Send(EvaluationEvent{
      .step = evaluation.step, .loss = evaluation.loss, .accuracy = evaluation.accuracy, .best = evaluation.best});
}

void EventPipe::OnCheckpoint(const training::SavedCheckpoint& saved) {
  CheckpointEvent event{.step = saved.step, .file = saved.file.string()};
  if (saved.size) {
    event.bytes = saved.size->bytes;
    event.checksum = saved.size->checksum;
  } else {
    event.problem = saved.size.error().message;
  }
  Send(event);
}

void EventPipe::OnSkippedCheckpoint(const std::filesystem::path& file, const Error& why) {
  Send(SkippedEvent{.file = file.string(), .why = why.message});
}

void EventPipe::OnMemory(const MemoryUse& use) {
  Send(MemoryEvent{.use = use});
}

void EventPipe::OnEstimate(const MemoryEstimate& estimate) {
  Send(EstimateEvent{.estimate = estimate});
}

void EventPipe::OnEnd(EndEvent end) {
  Send(std::move(end));
}

}  // namespace tandem
