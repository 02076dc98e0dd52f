#include "runtimes/training/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/learning/schedule.h"
#include "runtimes/training/trainer/batch_tensors.h"
#include "runtimes/training/trainer/process_bytes.h"
#include "runtimes/training/trainer/progress_text.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::training {
namespace {

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

}  // namespace

Trainer::Trainer(const TrainingJob& job, TrainerPaths paths, OpGate& gate, TrainerListener& listener,
                 const Clock& clock)
    : job_(job), paths_(std::move(paths)), gate_(gate), listener_(listener), clock_(clock) {}

Trainer::~Trainer() = default;

Result<std::unique_ptr<Trainer>> Trainer::Prepare(const TrainingJob& job, TrainerPaths paths, OpGate& gate,
                                                  TrainerListener& listener, const Clock& clock, const FitPlan& plan) {
  std::unique_ptr<Trainer> trainer(new Trainer(job, std::move(paths), gate, listener, clock));
  TANDEM_ASSIGN(trainer->learner_, Learner::Load(job, trainer->paths_.model, gate));
  trainer->learner_->Follow(plan);
  TANDEM_TRY(trainer->OpenData());
  trainer->checkpointer_ =
      std::make_unique<Checkpointer>(trainer->paths_.folder, job.checkpoint.keep,
                                     [&listener](const SavedCheckpoint& saved) { listener.OnCheckpoint(saved); });
  TANDEM_TRY(trainer->Resume());
  DropFreedMemory();
  return trainer;
}

Status Trainer::OpenData() {
  TANDEM_ASSIGN(const DataNeeds needs, NeedsOf(*learner_, job_));
  TANDEM_ASSIGN(source_, tandem::training::OpenData(job_.data, needs, paths_.data_root, job_.seed));
  if (job_.evaluation.data) {
    TANDEM_ASSIGN(evaluation_source_,
                  tandem::training::OpenData(*job_.evaluation.data, needs, paths_.data_root, job_.seed));
  }
  return {};
}

StreamOptions Trainer::TrainingBatches() const {
  return {.held_out = job_.evaluation.data ? 0 : job_.evaluation.split,
          .batch_size = job_.batch_size,
          .seed = job_.seed,
          .start = progress_.position};
}

Status Trainer::Resume() {
  std::optional<LoadedCheckpoint> loaded = checkpointer_->LoadNewest(
      [&](const std::filesystem::path& file, const Error& why) { listener_.OnSkippedCheckpoint(file, why); });
  if (loaded) {
    TANDEM_ASSIGN(progress_, ParseProgress(loaded->checkpoint.state));
    TANDEM_TRY(learner_->Restore(loaded->checkpoint.tensors));
  }
  TANDEM_ASSIGN(stream_, BatchStream::Open(*source_, TrainingBatches()));
  const std::int64_t batches = stream_->batches_per_epoch();
  total_steps_ = job_.steps > 0 ? job_.steps : (job_.epochs * batches + job_.accumulate - 1) / job_.accumulate;
  steps_per_epoch_ = std::max<std::int64_t>(1, batches / job_.accumulate);

  std::int64_t parameters = 0;
  for (const auto& [name, parameter] : learner_->parameters()) parameters += parameter.numel();
  listener_.OnPlan(
      {.first_step = progress_.step,
       .total_steps = total_steps_,
       .examples = stream_->examples(),
       .evaluation_examples = evaluation_source_ ? evaluation_source_->size() : source_->size() - stream_->examples(),
       .parameters = parameters,
       .model_parameters = learner_->model_parameters()});
  return {};
}

bool Trainer::Evaluates() const {
  return evaluation_source_ || job_.evaluation.split > 0;
}

Result<double> Trainer::ComputeGradients() {
  const IterationTensors tensors;
  const NamedTensors unsettled = tensors.in_lane() ? learner_->Unsettled() : NamedTensors();
  double loss = 0;
  for (std::int64_t i = 0; i < job_.accumulate; ++i) {
    TANDEM_ASSIGN(const std::optional<Batch> batch, stream_->Next());
    TANDEM_ASSIGN(const Examples examples, ToExamples(*batch));
    const auto part = learner_->Accumulate(examples, job_.accumulate);
    if (!part) {
      outgrown_ = tensors.outgrown();
      if (outgrown_) learner_->Drop(unsettled);
      return std::unexpected(part.error());
    }
    loss += *part / static_cast<double>(job_.accumulate);
  }
  return loss;
}

Result<bool> Trainer::BeginIteration() {
  TANDEM_TRY(LeaveLane());
  return gate_.BeginIteration();
}

TrainingEnd Trainer::LeaveForMore(std::uint64_t needed, bool settled) {
  // With some to spare: what came after the allocation that did not fit is not known.
  listener_.OnMemory({.persistent = AnonymousBytes(), .ephemeral = needed + needed / 4});
  if (settled) SaveCheckpoint();
  return TrainingEnd::kInterrupted;
}

Status Trainer::TrainStep() {
  memory_.BeginStep();
  TANDEM_ASSIGN(const double loss, ComputeGradients());
  const double rate = job_.optimizer.learning_rate * LearningRateFactor(job_.schedule, progress_.step, total_steps_);
  if (!std::isfinite(loss)) {
    return Invalid(
        "the loss is {} in step {}: the learning rate ({}) is probably too high for this model, or the data holds "
        "values "
        "that are; try a lower rate, clip_norm or a warm-up",
        loss, progress_.step + 1, rate);
  }
  learner_->Step(rate, job_.clip_norm);
  ++progress_.step;
  progress_.position = stream_->position();
  if (const auto use = memory_.EndStep(progress_.step == total_steps_)) listener_.OnMemory(*use);
  listener_.OnStep({.step = progress_.step, .epoch = progress_.position.epoch, .loss = loss, .learning_rate = rate});
  return {};
}

bool Trainer::IsBetter(double metric) const {
  if (!progress_.best) return true;
  return HasAccuracy(job_.loss.kind) ? metric > *progress_.best : metric < *progress_.best;
}

Status Trainer::Evaluate() {
  StreamOptions options = TrainingBatches();
  options.part = evaluation_source_ ? StreamPart::kTraining : StreamPart::kHeldOut;
  options.shuffle = false;
  options.epochs = 1;
  options.start = {};
  TANDEM_ASSIGN(const auto batches, BatchStream::Open(evaluation_source_ ? *evaluation_source_ : *source_, options));
  double loss = 0;
  std::int64_t examples = 0;
  std::int64_t right = 0;
  std::int64_t targets = 0;
  for (;;) {
    TANDEM_ASSIGN(const std::optional<Batch> batch, batches->Next());
    if (!batch) break;
    // To be seen through once begun, whatever the answer: a checkpoint does not say how far it came.
    TANDEM_ASSIGN(const bool has_turn, BeginIteration());
    // Without a turn the lane is another's.
    std::optional<IterationTensors> tensors;
    if (has_turn) tensors.emplace();
    TANDEM_ASSIGN(const Examples converted, ToExamples(*batch));
    const auto score = learner_->Evaluate(converted);
    if (!score) {
      if (tensors) outgrown_ = tensors->outgrown();
      return std::unexpected(score.error());
    }
    loss += score->loss * static_cast<double>(batch->size);
    examples += batch->size;
    right += score->right;
    targets += score->targets;
  }
  TrainerListener::Evaluation report{
      .step = progress_.step, .loss = loss / static_cast<double>(examples), .accuracy = {}, .best = false};
  if (HasAccuracy(job_.loss.kind)) report.accuracy = static_cast<double>(right) / static_cast<double>(targets);
  const double metric = report.accuracy.value_or(report.loss);
  report.best = IsBetter(metric);
  if (report.best) {
    progress_.best = metric;
    progress_.since_best = 0;
    TANDEM_TRY(WriteCheckpoint(BestFile(), {.state = "", .tensors = learner_->Weights()}));
  } else {
    ++progress_.since_best;
  }
  if (!progress_.baseline) progress_.baseline = metric;
  listener_.OnEvaluation(report);
  return {};
}

bool Trainer::EvaluationDue() const {
  if (!Evaluates()) return false;
  const std::int64_t every = job_.evaluation.every_steps > 0 ? job_.evaluation.every_steps : steps_per_epoch_;
  return progress_.step % every == 0 || progress_.step == total_steps_;
}

bool Trainer::CheckpointDue() const {
  const std::int64_t every = job_.checkpoint.every_steps;
  if (every > 0 && progress_.step - last_checkpoint_step_ >= every) return true;
  return job_.checkpoint.every_seconds > 0 && clock_.Now() - last_checkpoint_ >= Seconds(job_.checkpoint.every_seconds);
}

void Trainer::SaveCheckpoint() {
  last_checkpoint_step_ = progress_.step;
  last_checkpoint_ = clock_.Now();
  checkpointer_->Save(progress_.step, {.state = ProgressText(progress_), .tensors = learner_->Snapshot()});
}

Status Trainer::WriteResult() {
  DropFreedMemory();
  NamedTensors weights = learner_->Weights();
  if (Evaluates()) {
    auto best = ReadCheckpoint(BestFile());
    if (best) {
      weights = std::move(best->tensors);
    } else {
      listener_.OnSkippedCheckpoint(BestFile(), best.error());
    }
  }
  TANDEM_ASSIGN(onnx::ModelProto model, ModelWithWeights(job_, paths_.model, weights));
  PutMetadata("tandem.job", std::to_string(paths_.job), model);
  PutMetadata("tandem.job_name", job_.name, model);
  PutMetadata("tandem.steps", std::to_string(progress_.step), model);
  if (progress_.best) PutMetadata("tandem.metric", std::to_string(*progress_.best), model);
  return SaveModel(model, ResultFile(paths_));
}

Status Trainer::Measure() {
  if (!Evaluates()) return Invalid("/evaluation: the job has none, so nothing can be measured");
  return Evaluate();
}

Result<TrainingEnd> Trainer::Run(const std::atomic<bool>& interrupt) {
  last_checkpoint_ = clock_.Now();
  last_checkpoint_step_ = progress_.step;
  TrainingEnd end = TrainingEnd::kFinished;
  if (Evaluates() && !progress_.baseline) {
    const Status evaluated = Evaluate();
    if (!evaluated && !outgrown_) return std::unexpected(evaluated.error());
    if (!evaluated) end = LeaveForMore(*outgrown_, /*settled=*/false);
  }
  while (progress_.step < total_steps_ && end == TrainingEnd::kFinished) {
    TANDEM_ASSIGN(const bool begins, BeginIteration());
    if (!begins) {
      end = TrainingEnd::kInterrupted;
      SaveCheckpoint();
      break;
    }
    const Status stepped = TrainStep();
    if (!stepped && !outgrown_) return std::unexpected(stepped.error());
    if (!stepped) {
      end = LeaveForMore(*outgrown_, /*settled=*/true);
      break;
    }
    const Status evaluated = EvaluationDue() ? Evaluate() : Status();
    if (!evaluated && !outgrown_) return std::unexpected(evaluated.error());
    if (!evaluated) {
      // Its result belongs to this step: both are computed again.
      end = LeaveForMore(*outgrown_, /*settled=*/false);
      break;
    }
    if (job_.evaluation.patience > 0 && progress_.since_best >= job_.evaluation.patience)
      end = TrainingEnd::kStoppedEarly;
    if (interrupt.load(std::memory_order_relaxed)) end = TrainingEnd::kInterrupted;
    if (CheckpointDue() || end == TrainingEnd::kInterrupted) SaveCheckpoint();
  }
  // Of the lane; what follows has memory of its own.
  TANDEM_TRY(LeaveLane());
  gate_.EndIterations();
  if (end != TrainingEnd::kInterrupted) TANDEM_TRY(WriteResult());
  checkpointer_->Flush();
  return end;
}

}  // namespace tandem::training
