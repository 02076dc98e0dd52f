#include "colocation/batch_runner.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <utility>

#include "colocation/batch_assembly.h"

namespace tandem {
namespace {

// Stops a run when every one of its members has gone.
class BatchCancellation {
 public:
  explicit BatchCancellation(std::span<const WorkItem> items) : waiting_(items.size()) {
    registrations_.reserve(items.size());
    for (const WorkItem& item : items) {
      registrations_.push_back(item.cancel->OnCancel([this] {
        if (waiting_.fetch_sub(1, std::memory_order_acq_rel) == 1) token_.Cancel();
      }));
    }
  }

  CancelToken& token() { return token_; }

 private:
  CancelToken token_;
  std::atomic<std::size_t> waiting_;
  std::vector<CancelToken::Registration> registrations_;
};

// Of a run over `elements` that took so long, or was stopped then.
void Learn(const Servable& servable, RunWidth width, std::int64_t elements,
           const std::optional<RunPrediction>& predicted, MonotonicTime start, MonotonicTime end, bool stopped) {
  // One that nobody waited for any longer would have taken longer still.
  if (stopped && predicted && end - start <= predicted->typical) return;
  const bool relied_on = predicted && !IsDoubtful(*predicted, start);
  if (relied_on && (!stopped || end - start > predicted->high)) {
    servable.run_bounds().Note(end - start, predicted->high);
  }
  servable.latency(width).Observe(elements, end - start, end);
}

std::int64_t Elements(std::span<const WorkItem> items) {
  std::int64_t elements = 0;
  for (const WorkItem& item : items) elements += item.batch;
  return elements;
}

}  // namespace

std::size_t InputBytes(std::span<const Tensor> inputs) {
  std::size_t bytes = 0;
  for (const Tensor& input : inputs) bytes += input.data.size();
  return bytes;
}

bool IsDead(const WorkItem& item, MonotonicTime now) {
  return item.cancel->cancelled() || (item.deadline && *item.deadline < now);
}

void Answer(WorkItem& item, Result<WorkResult> result) {
  auto done = std::exchange(item.done, nullptr);
  try {
    done(std::move(result));
  } catch (const std::bad_alloc&) {
    // Whoever asked has its own way to say so; this thread has others to answer.
  }
}

void AnswerOutOfMemory(WorkItem& item) {
  // Fits into a string without allocating.
  Answer(item, std::unexpected(Error{ErrorCode::kUnavailable, "out of memory"}));
}

void AnswerDead(WorkItem& item, MonotonicTime now) {
  try {
    // A front end may cancel what is late, too; whoever comes first, it is late.
    if (item.deadline && *item.deadline <= now) {
      Answer(item, Fail(ErrorCode::kDeadlineExceeded, "model '{}': the deadline passed while the request waited",
                        item.servable->name()));
    } else if (item.cancel->cancelled()) {
      Answer(item, Fail(ErrorCode::kCancelled, "the client has gone"));
    } else {
      Answer(item, Fail(ErrorCode::kDeadlineExceeded,
                        "model '{}': the request waited until its run would have ended after the deadline",
                        item.servable->name()));
    }
  } catch (const std::bad_alloc&) {
    AnswerOutOfMemory(item);
  }
}

void BatchRunner::RunAndAnswer(std::span<WorkItem> items, std::span<const MonotonicTime> queued, RunPlace place) const {
  try {
    RunTogether(items, queued, place);
  } catch (const std::bad_alloc&) {
    for (WorkItem& item : items) {
      if (item.done) AnswerOutOfMemory(item);
    }
  }
}

std::uint64_t BatchRunner::RecordBegin(std::span<const WorkItem> items, const Run& run, RunPlace place) const {
  if (recorder_ == nullptr || !recorder_->on()) return 0;
  const Servable& servable = *items.front().servable;
  const std::uint64_t batch = recorder_->NextBatch();
  BatchBegan began{.at = run.start,
                   .batch = batch,
                   .model = recorder_->names().NumberOf(servable.name()),
                   .version = servable.version(),
                   .elements = Elements(items),
                   .requests = static_cast<std::int64_t>(items.size()),
                   .worker = place.worker,
                   .narrow = place.width == RunWidth::kOne,
                   .exclusive = place.exclusive,
                   .expected = {}};
  if (run.predicted) began.expected = run.predicted->typical;
  recorder_->Write(began);
  for (const WorkItem& item : items) {
    recorder_->Write(RequestJoined{.at = run.start, .request = item.number, .batch = batch});
  }
  return batch;
}

void BatchRunner::TollBegin(const Servable& servable, std::int64_t elements, std::span<const MonotonicTime> queued,
                            Run& run, RunPlace place) const {
  if (toll_ == nullptr) return;
  run.alone = servable.Alone(elements, run.start, place.width);
  // One that waits for company waits on purpose.
  const bool waits = servable.batching().max_queue_delay.count() > 0;
  const MonotonicTime since = waits ? run.start : std::max(std::ranges::min(queued), place.free_since);
  toll_->RunBegan(place.worker, since, run.start, run.alone);
}

void BatchRunner::TollEnd(const Servable& servable, std::int64_t elements, const Run& run, MonotonicTime end,
                          RunPlace place) const {
  if (toll_ == nullptr) return;
  if (toll_->RunEnded(place.worker, run.start, end, run.alone)) {
    servable.alone(place.width).BeginToAge(end);
  } else if (run.ran) {
    servable.alone(place.width).Observe(elements, run.took, end);
  }
}

BatchRunner::Run BatchRunner::Execute(std::span<const WorkItem> items, std::span<const MonotonicTime> queued,
                                      RunPlace place) const {
  const Servable& servable = *items.front().servable;
  const std::int64_t elements = Elements(items);
  Run run{.start = clock_.Now()};
  run.predicted = servable.Predict(elements, place.width);
  TollBegin(servable, elements, queued, run, place);
  const std::uint64_t batch = RecordBegin(items, run, place);
  MonotonicTime ready = run.start;
  MonotonicTime computed = run.start;
  try {
    const std::vector<Tensor> inputs = JoinInputs(items);
    const std::vector<std::string> outputs = UnionOfOutputs(items);
    BatchCancellation cancellation(items);
    ready = clock_.Now();
    Result<std::vector<Tensor>> ran = servable.session(place.width).Run(inputs, outputs, cancellation.token());
    computed = clock_.Now();
    // A run that was cancelled or failed early does not show that others are short.
    if (ran || computed - ready > ShortRuns::kShort) {
      servable.short_runs().Observe(InputBytes(inputs), computed - ready);
    }
    if (ran) {
      run.outputs = SplitOutputs(items, *std::move(ran));
      const MonotonicTime done = clock_.Now();
      run.took = done - run.start;
      Learn(servable, place.width, elements, run.predicted, run.start, done, false);
    } else {
      if (ran.error().code == ErrorCode::kCancelled) {
        Learn(servable, place.width, elements, run.predicted, run.start, computed, true);
      }
      run.ran = std::unexpected(std::move(ran).error());
    }
  } catch (const std::bad_alloc&) {
    run.ran = Fail(ErrorCode::kUnavailable, "model '{}': there is not enough memory for this run", servable.name());
  }
  const MonotonicTime end = clock_.Now();
  run.timing = {.queue = {},
                .compute_input = ready - run.start,
                .compute_infer = computed - ready,
                .compute_output = end - computed};
  TollEnd(servable, elements, run, end, place);
  if (batch != 0) {
    recorder_->Write(BatchEnded{.at = end,
                                .batch = batch,
                                .error = run.ran ? std::nullopt : std::optional(run.ran.error().code),
                                .model = recorder_->names().NumberOf(servable.name()),
                                .version = servable.version(),
                                .elements = elements,
                                .requests = static_cast<std::int64_t>(items.size()),
                                .worker = place.worker,
                                .narrow = place.width == RunWidth::kOne,
                                .exclusive = place.exclusive,
                                .began = run.start});
  }
  return run;
}

void BatchRunner::RunTogether(std::span<WorkItem> items, std::span<const MonotonicTime> queued, RunPlace place) const {
  Run run = Execute(items, queued, place);
  if (run.ran) {
    const std::shared_ptr<Servable>& servable = items.front().servable;
    const std::int64_t batch = Elements(items);
    servable->CountRun(place.width);
    servable->statistics().RecordExecution(static_cast<std::uint64_t>(batch), run.timing, clock_.WallNow());
    if (on_run_ && servable->counted()) {
      on_run_(*servable, {.elements = batch, .took = run.took, .predicted = run.predicted});
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    run.timing.queue = run.start - queued[i];
    if (run.ran && run.outputs[i]) {
      Answer(items[i], WorkResult{.outputs = *std::move(run.outputs[i]), .timing = run.timing});
      continue;
    }
    const Error& error = run.ran ? run.outputs[i].error() : run.ran.error();
    // One request's data or outputs may fail a run that others share; apart, only the guilty one fails.
    const bool apart = items.size() > 1 && error.code != ErrorCode::kCancelled;
    if (!apart) Answer(items[i], std::unexpected(error));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].done) RunApart(items[i], queued[i], place);
  }
}

void BatchRunner::RunApart(WorkItem& item, MonotonicTime queued, RunPlace place) const {
  if (const MonotonicTime now = clock_.Now(); IsDead(item, now)) {
    AnswerDead(item, now);
  } else {
    RunTogether({&item, 1}, {&queued, 1}, place);
  }
}

}  // namespace tandem
