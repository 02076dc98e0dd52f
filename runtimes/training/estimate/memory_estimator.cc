#include "runtimes/training/estimate/memory_estimator.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "api/base/format.h"
#include "runtimes/training/data/batch_stream.h"
#include "runtimes/training/estimate/fit_study.h"
#include "runtimes/training/estimate/meta_fallback.h"
#include "runtimes/training/estimate/meta_kernels.h"
#include "runtimes/training/estimate/meta_ledger.h"
#include "runtimes/training/estimate/step_trace.h"
#include "runtimes/training/estimate/workspace.h"
#include "runtimes/training/ops/torch_error.h"
#include "runtimes/training/trainer/batch_tensors.h"
#include "runtimes/training/trainer/learner.h"
#include "runtimes/training/trainer/process_bytes.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::training {
namespace {

at::Tensor HollowBatch(const at::Tensor& example, std::int64_t count) {
  std::vector<std::int64_t> sizes = example.sizes().vec();
  sizes[0] = count;
  return at::empty(sizes, example.options().device(at::kMeta));
}

// A batch as the job has them, and what its data would take beside ATen's tensors.
struct HollowExamples {
  Examples examples;
  std::uint64_t held = 0;
};

Result<HollowExamples> MakeExamples(const Learner& learner, const TrainingJob& job,
                                    const std::filesystem::path& data_root) {
  TANDEM_ASSIGN(const DataNeeds needs, NeedsOf(learner, job));
  // What the model left behind may be taken by the data unseen.
  DropFreedMemory();
  const std::uint64_t before = AnonymousBytes();
  TANDEM_ASSIGN(const auto source, OpenData(job.data, needs, data_root, job.seed));
  std::unique_ptr<ExampleSource> other;
  if (job.evaluation.data) {
    TANDEM_ASSIGN(other, OpenData(*job.evaluation.data, needs, data_root, job.seed));
  }
  const std::uint64_t opened = AnonymousBytes();
  const std::int64_t held_out = job.evaluation.data ? 0 : HeldOutCount(source->size(), job.evaluation.split);
  const std::int64_t count = std::min(job.batch_size, source->size() - held_out);
  if (count < 1) return Invalid("/data has {} examples to learn from", source->size() - held_out);
  Batch one;
  constexpr std::array<std::int64_t, 1> kFirst{0};
  TANDEM_TRY(source->Read(kFirst, one));
  TANDEM_ASSIGN(const Examples first, ToExamples(one));
  HollowExamples made{.examples = {.inputs = {}, .target = HollowBatch(first.target, count), .size = count}};
  for (const at::Tensor& input : first.inputs) made.examples.inputs.push_back(HollowBatch(input, count));
  std::uint64_t batch = RoundedBlock(made.examples.target.nbytes());
  for (const at::Tensor& input : made.examples.inputs) batch += RoundedBlock(input.nbytes());
  constexpr std::uint64_t kHeld = StreamOptions{}.prefetch + 1;  // With the one that is learnt from.
  made.held = kHeld * batch + (opened > before ? opened - before : 0);
  return made;
}

Status GoThroughStep(Learner& learner, const TrainingJob& job, const Examples& examples) {
  // What accumulates is there from the second batch on.
  for (std::int64_t i = 0; i < std::min<std::int64_t>(job.accumulate, 2); ++i) {
    TANDEM_TRY(learner.Accumulate(examples, job.accumulate));
  }
  try {
    learner.Step(job.optimizer.learning_rate, job.clip_norm);
  } catch (const c10::Error& error) {
    return Invalid("the update of the parameters: {}", error.what_without_backtrace());
  }
  return {};
}

// Whether a real step might succeed: ATen has no code of its own for what it cannot do without numbers.
bool IsForWantOfNumbers(const Error& error) {
  return error.message.contains("meta") || error.message.contains("Meta") || error.message.contains(kNotFromShapes);
}

// What is left of the job's memory for a step, which is what it needs or less.
Result<std::uint64_t> BoundOfStep(const TrainingJob& job, const PersistentBytes& persistent) {
  if (!job.memory) return std::numeric_limits<std::uint64_t>::max();
  // What is written to a checkpoint is copied first; and blocks of changing sizes leave gaps.
  constexpr std::uint64_t kGaps = 32;  // One in so many bytes.
  const std::uint64_t copy = persistent.weights + persistent.optimizer;
  const std::uint64_t rest = persistent.total() + copy;
  if (rest >= *job.memory) {
    return Fail(ErrorCode::kTooLarge,
                "/memory is {} bytes, and {} are there before the first step: weights {}, state of the optimizer {}, a "
                "copy of both for checkpoints, data {}, libraries {}",
                *job.memory, rest, persistent.weights, persistent.optimizer, persistent.data, persistent.framework);
  }
  const std::uint64_t left = *job.memory - rest;
  return left - left / kGaps;
}

Result<FittedJob> Fitted(const TrainingJob& job, FitStudy& study, MemoryEstimate estimate) {
  TANDEM_ASSIGN(const std::uint64_t bound, BoundOfStep(job, estimate.persistent));
  TANDEM_ASSIGN(FittedStep step, study.Fit(bound));
  if (step.peak > bound) {
    return Fail(ErrorCode::kTooLarge,
                "/memory is {} bytes, of which a step may take {}; with memory: fit it takes {} at least", *job.memory,
                bound, step.least);
  }
  estimate.ephemeral = step.peak;
  estimate.fit = FitEstimate{.kept = step.kept, .least = step.least, .slowdown = step.slowdown};
  return FittedJob{.memory = std::move(estimate), .plan = std::move(step.plan)};
}

Result<FittedJob> Estimate(const TrainingJob& job, const std::filesystem::path& model,
                           const std::filesystem::path& data_root) {
  MemoryEstimate estimate;
  const std::uint64_t libraries = AnonymousBytes();
  AddMetaKernels();
  MetaLedger ledger;
  StepTrace trace(ledger);
  TANDEM_ASSIGN(const auto learner, Learner::Load(job, model, trace, Substance::kHollow));
  TANDEM_ASSIGN(const HollowExamples batch, MakeExamples(*learner, job, data_root));
  estimate.persistent.weights = learner->constant_bytes();
  const std::uint64_t before = ledger.live();
  const auto step = [&]() -> Status {
    const Status done = GoThroughStep(*learner, job, batch.examples);
    if (done || !IsForWantOfNumbers(done.error())) return done;
    return Fail(ErrorCode::kUnsupported, "its memory cannot be told from shapes alone: {}", done.error().message);
  };
  TANDEM_TRY(step());
  const std::uint64_t persistent = ledger.live();
  TANDEM_TRY(step());
  estimate.persistent.optimizer = persistent - before;
  estimate.persistent.framework = libraries + FrameworkGrowth(ledger.convolutions());
  estimate.persistent.data = batch.held;
  estimate.batch = batch.examples.size;
  FittedJob fitted;
  if (job.fit) {
    FitStudy study(*learner, ledger, trace, step);
    TANDEM_ASSIGN(fitted, Fitted(job, study, std::move(estimate)));
    // As it will be.
    trace.Clear();
    TANDEM_TRY(step());
  } else {
    fitted.memory = std::move(estimate);
  }
  if (const auto highest = trace.Highest()) {
    fitted.memory.ephemeral = highest->peak - persistent;
    fitted.memory.peak = trace.NameOf(highest->op);
  }
  return fitted;
}

}  // namespace

Result<FittedJob> FitMemory(const TrainingJob& job, const std::filesystem::path& model,
                            const std::filesystem::path& data_root) {
  try {
    return Estimate(job, model, data_root);
  } catch (const c10::Error& error) {
    return std::unexpected(TorchError("the estimate", error));
  } catch (const std::bad_alloc&) {
    return std::unexpected(OutOfMemory("the estimate"));
  } catch (const std::exception& error) {
    // A job can be run all the same.
    return Fail(ErrorCode::kInternal, "the estimate: {}", error.what());
  }
}

Result<MemoryEstimate> EstimateMemory(const TrainingJob& job, const std::filesystem::path& model,
                                      const std::filesystem::path& data_root) {
  TANDEM_ASSIGN(FittedJob fitted, FitMemory(job, model, data_root));
  return std::move(fitted.memory);
}

}  // namespace tandem::training
