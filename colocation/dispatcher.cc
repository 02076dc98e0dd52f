#include "colocation/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <span>
#include <utility>

#include "colocation/batch_assembly.h"

namespace tandem {
namespace {

// Stops a run when every one of its members has gone.
class BatchCancellation {
 public:
  explicit BatchCancellation(const std::vector<WorkItem>& items) : waiting_(items.size()) {
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

std::size_t InputBytes(std::span<const Tensor> inputs) {
  std::size_t bytes = 0;
  for (const Tensor& input : inputs) bytes += input.data.size();
  return bytes;
}

// Nobody waits for it, or not in time: never compute it.
bool IsDead(const WorkItem& item, MonotonicTime now) {
  return item.cancel->cancelled() || (item.deadline && *item.deadline < now);
}

}  // namespace

Dispatcher::Dispatcher(const Clock& clock, const AdmissionPolicy& admission, DispatcherOptions options)
    : clock_(clock), admission_(admission), options_(std::move(options)) {
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this] { Work(); });
  }
}

Dispatcher::~Dispatcher() {
  std::vector<Entry> left;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    left = queue_.TakeAll();
    std::ranges::move(std::exchange(graveyard_, {}), std::back_inserter(left));
  }
  work_or_stop_.NotifyAll();
  for (Entry& entry : left) {
    entry.on_cancel = {};
    entry.item.done(Fail(ErrorCode::kUnavailable, "the server is shutting down"));
  }
  workers_.clear();
}

Status Dispatcher::Admit(const WorkItem& item, MonotonicTime now) const {
  if (stopping_) return Fail(ErrorCode::kUnavailable, "the server is shutting down");
  return admission_.Admit({.model = item.servable->name(),
                           .now = now,
                           .deadline = item.deadline,
                           .queued = queue_.size(),
                           .queued_model = queue_.size(*item.servable),
                           .max_queued = options_.max_queued,
                           .max_queued_model = item.servable->batching().max_queue_size});
}

void Dispatcher::Submit(WorkItem item) {
  const MonotonicTime now = clock_.Now();
  if (RunHere(item, now)) return;
  const std::shared_ptr<Servable> servable = item.servable;
  const QueueKey key{.priority = item.priority,
                     .deadline = item.deadline.value_or(MonotonicTime::max()),
                     .sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed)};
  // Registered before it is queued, outside our lock. A cancellation in between is seen when the item is taken.
  CancelToken::Registration on_cancel = item.cancel->OnCancel([this, s = servable.get(), key] { Bury(*s, key); });
  Status admitted;
  {
    MutexLock lock(mu_);
    admitted = Admit(item, now);
    if (admitted) queue_.Push(key, {.item = std::move(item), .queued = now, .on_cancel = std::move(on_cancel)});
  }
  if (admitted) {
    work_or_stop_.NotifyOne();
  } else {
    on_cancel = {};
    item.done(std::unexpected(admitted.error()));
  }
}

bool Dispatcher::RunHere(WorkItem& item, MonotonicTime now) {
  if (IsDead(item, now) || !item.servable->short_runs().Expects(InputBytes(item.inputs))) return false;
  {
    MutexLock lock(mu_);
    if (running_ > 0 || queue_.size() > 0 || !Admit(item, now)) return false;
    if (ChooseBatch({.settings = item.servable->batching(), .sizes = {&item.batch, 1}}).take == 0) return false;
    ++running_here_;
  }
  std::vector<WorkItem> items;
  items.push_back(std::move(item));
  RunTogether(items, {now});
  MutexLock lock(mu_);
  --running_here_;
  if (Idle()) idle_.NotifyAll();
  return true;
}

bool Dispatcher::Idle() const {
  return running_ == 0 && running_here_ == 0 && queue_.size() == 0 && graveyard_.empty();
}

void Dispatcher::Bury(const Servable& servable, const QueueKey& key) {
  {
    MutexLock lock(mu_);
    std::optional<Entry> entry = queue_.Take(servable, key);
    if (!entry) return;
    graveyard_.push_back(std::move(*entry));
  }
  work_or_stop_.NotifyOne();
}

Dispatcher::Step Dispatcher::NextStep(MonotonicTime now) {
  Step step{.dead = std::exchange(graveyard_, {}), .batch = {}, .wait = std::chrono::nanoseconds::max()};
  for (const Servable* servable : queue_.ByUrgency()) {
    while (!queue_.Waiting(*servable).empty() && IsDead(queue_.Waiting(*servable).begin()->second.item, now)) {
      step.dead.push_back(std::move(*queue_.Take(*servable, queue_.Waiting(*servable).begin()->first)));
    }
    if (queue_.Waiting(*servable).empty()) continue;
    std::vector<QueueKey> keys;
    const BatchDecision decision = Decide(*servable, now, keys);
    if (decision.take == 0) {
      step.wait = std::min(step.wait, decision.wait);
      continue;
    }
    for (const QueueKey& key : std::span(keys).first(decision.take)) {
      step.batch.push_back(std::move(*queue_.Take(*servable, key)));
    }
    return step;
  }
  return step;
}

BatchDecision Dispatcher::Decide(const Servable& servable, MonotonicTime now, std::vector<QueueKey>& keys) const {
  const RequestQueue::ModelQueue& waiting = queue_.Waiting(servable);
  const BatchSettings& settings = servable.batching();
  const WorkItem& first = waiting.begin()->second.item;
  std::vector<std::int64_t> sizes;
  MonotonicTime oldest = now;
  std::int64_t elements = 0;
  for (const auto& [key, entry] : waiting) {
    // Once a batch is full the rest cannot change the decision.
    if (!keys.empty() && (!settings.dynamic || elements >= settings.max_batch_size)) break;
    if (!keys.empty() && (IsDead(entry.item, now) || !CanShareRun(first, entry.item))) continue;
    keys.push_back(key);
    sizes.push_back(entry.item.batch);
    elements += entry.item.batch;
    oldest = std::min(oldest, entry.queued);
  }
  return ChooseBatch({.settings = settings, .sizes = sizes, .oldest_wait = now - oldest});
}

void Dispatcher::Work() {
  while (true) {
    Step step;
    {
      MutexLock lock(mu_);
      while (true) {
        if (stopping_) return;
        step = NextStep(clock_.Now());
        if (!step.dead.empty() || !step.batch.empty()) break;
        if (step.wait == std::chrono::nanoseconds::max()) {
          work_or_stop_.Wait(mu_);
        } else {
          work_or_stop_.WaitFor(mu_, step.wait);
        }
      }
      ++running_;
    }
    for (Entry& entry : step.dead) AnswerDead(std::move(entry));
    if (!step.batch.empty()) RunBatch(std::move(step.batch));
    {
      MutexLock lock(mu_);
      --running_;
      if (Idle()) idle_.NotifyAll();
    }
  }
}

void Dispatcher::AnswerDead(Entry entry) {
  entry.on_cancel = {};
  WorkItem& item = entry.item;
  if (item.cancel->cancelled()) {
    item.done(Fail(ErrorCode::kCancelled, "the client has gone"));
  } else {
    item.done(Fail(ErrorCode::kDeadlineExceeded, "model '{}': the deadline passed while the request waited",
                   item.servable->name()));
  }
}

void Dispatcher::RunBatch(std::vector<Entry> entries) {
  std::vector<WorkItem> items;
  std::vector<MonotonicTime> queued;
  items.reserve(entries.size());
  queued.reserve(entries.size());
  for (Entry& entry : entries) {
    entry.on_cancel = {};
    items.push_back(std::move(entry.item));
    queued.push_back(entry.queued);
  }
  RunTogether(items, queued);
}

Dispatcher::Run Dispatcher::Execute(const std::vector<WorkItem>& items) const {
  const Servable& servable = *items.front().servable;
  Run run{.start = clock_.Now()};
  MonotonicTime ready = run.start;
  MonotonicTime computed = run.start;
  try {
    const std::vector<Tensor> inputs = JoinInputs(items);
    const std::vector<std::string> outputs = UnionOfOutputs(items);
    BatchCancellation cancellation(items);
    ready = clock_.Now();
    Result<std::vector<Tensor>> ran = servable.session().Run(inputs, outputs, cancellation.token());
    computed = clock_.Now();
    // A run that was cancelled or failed early does not show that others are short.
    if (ran || computed - ready > ShortRuns::kShort) {
      servable.short_runs().Observe(InputBytes(inputs), computed - ready);
    }
    run.completed = ran.has_value();
    run.outputs = ran ? SplitOutputs(items, *ran) : std::unexpected(std::move(ran).error());
  } catch (const std::bad_alloc&) {
    run.outputs = Fail(ErrorCode::kUnavailable, "model '{}': there is not enough memory for this run", servable.name());
  }
  run.timing = {.queue = {},
                .compute_input = ready - run.start,
                .compute_infer = computed - ready,
                .compute_output = clock_.Now() - computed};
  return run;
}

void Dispatcher::RunTogether(std::vector<WorkItem>& items, const std::vector<MonotonicTime>& queued) {
  Run run = Execute(items);
  // One request's data may fail a run that others share; apart, only the guilty one fails.
  if (!run.completed && items.size() > 1 && run.outputs.error().code != ErrorCode::kCancelled) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::vector<WorkItem> alone;
      alone.push_back(std::move(items[i]));
      RunTogether(alone, {queued[i]});
    }
    return;
  }
  if (run.outputs) {
    const std::shared_ptr<Servable>& servable = items.front().servable;
    std::int64_t batch = 0;
    for (const WorkItem& item : items) batch += item.batch;
    servable->statistics().RecordExecution(static_cast<std::uint64_t>(batch), run.timing, clock_.WallNow());
    if (options_.on_batch) options_.on_batch(*servable, batch);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    run.timing.queue = run.start - queued[i];
    if (run.outputs) {
      items[i].done(WorkResult{.outputs = std::move((*run.outputs)[i]), .timing = run.timing});
    } else {
      items[i].done(std::unexpected(run.outputs.error()));
    }
  }
}

bool Dispatcher::WaitIdle(std::chrono::nanoseconds timeout) {
  const MonotonicTime until = RealClock::Instance().Now() + timeout;
  MutexLock lock(mu_);
  while (!Idle()) {
    const auto left = until - RealClock::Instance().Now();
    if (left <= std::chrono::nanoseconds::zero()) return false;
    idle_.WaitFor(mu_, left);
  }
  return true;
}

std::size_t Dispatcher::queued() const {
  MutexLock lock(mu_);
  return queue_.size();
}

std::size_t Dispatcher::queued(const Servable& servable) const {
  MutexLock lock(mu_);
  return queue_.size(servable);
}

}  // namespace tandem
