#include "colocation/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "api/base/thread_name.h"
#include "colocation/batch_assembly.h"
#include "colocation/run_groups.h"

namespace tandem {
namespace {

// How often the dead are looked for at most: an answer that says "too late" need not be more punctual.
constexpr std::chrono::milliseconds kWatchEvery{5};
// A deadline may lie further ahead than a timer can be set.
constexpr std::chrono::hours kLongestSleep{1};
constexpr std::chrono::microseconds kTick{1};
// Until a worker that found no memory to choose its work looks again.
constexpr std::chrono::milliseconds kPauseWithoutMemory{10};

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

std::int64_t Elements(std::span<const WorkItem> items) {
  std::int64_t elements = 0;
  for (const WorkItem& item : items) elements += item.batch;
  return elements;
}

std::size_t InputBytes(std::span<const Tensor> inputs) {
  std::size_t bytes = 0;
  for (const Tensor& input : inputs) bytes += input.data.size();
  return bytes;
}

// Nobody waits for it, or not in time: never compute it.
bool IsDead(const WorkItem& item, MonotonicTime now) {
  return item.cancel->cancelled() || (item.deadline && *item.deadline < now);
}

// Fits into a string without allocating.
Error OutOfMemory() {
  return {ErrorCode::kUnavailable, "out of memory"};
}

void Answer(WorkItem& item, Result<WorkResult> result) {
  auto done = std::exchange(item.done, nullptr);
  try {
    done(std::move(result));
  } catch (const std::bad_alloc&) {
    // Whoever asked has its own way to say so; this thread has others to answer.
  }
}

}  // namespace

Dispatcher::Dispatcher(const Clock& clock, const AdmissionPolicy& admission, DispatcherOptions options)
    : clock_(clock), admission_(admission), options_(std::move(options)) {
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back([this, name = "worker-" + std::to_string(i)] {
      NameThread(name);
      Work();
    });
  }
  undertaker_ = std::jthread([this] {
    NameThread("undertaker");
    AnswerTheDead();
  });
}

Dispatcher::~Dispatcher() {
  std::vector<Entry> left;
  {
    MutexLock lock(mu_);
    stopping_ = true;
    news_.fetch_add(1, std::memory_order_release);
    left = queue_.TakeAll();
    std::ranges::move(std::exchange(graveyard_, {}), std::back_inserter(left));
  }
  work_or_stop_.NotifyAll();
  dead_or_stop_.NotifyAll();
  for (Entry& entry : left) {
    entry.on_cancel = {};
    Answer(entry.item, Fail(ErrorCode::kUnavailable, "the server is shutting down"));
  }
  workers_.clear();
}

Status Dispatcher::Admit(const WorkItem& item, MonotonicTime now) const {
  if (stopping_) return Fail(ErrorCode::kUnavailable, "the server is shutting down");
  if (item.cancel->cancelled()) return Fail(ErrorCode::kCancelled, "the client has gone");
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
  // Registered before it is queued, outside our lock. A cancellation in between is seen on admission.
  CancelToken::Registration on_cancel = item.cancel->OnCancel([this, s = servable.get(), key] { Bury(*s, key); });
  Status admitted;
  {
    MutexLock lock(mu_);
    admitted = Admit(item, now);
    if (!admitted && BuryExpired(now)) admitted = Admit(item, now);
    if (admitted) {
      queue_.Push(key, {.item = std::move(item), .queued = now, .on_cancel = std::move(on_cancel)});
      news_.fetch_add(1, std::memory_order_release);
      if (running_ == options_.workers) WatchFor(key.deadline);
    }
  }
  if (admitted) {
    work_or_stop_.NotifyOne();
  } else {
    on_cancel = {};
    Answer(item, std::unexpected(admitted.error()));
  }
}

bool Dispatcher::RunHere(WorkItem& item, MonotonicTime now) {
  if (IsDead(item, now) || !item.servable->short_runs().Expects(InputBytes(item.inputs))) return false;
  {
    MutexLock lock(mu_);
    if (running_ > 0 || queue_.size() > 0 || !Admit(item, now)) return false;
  }
  BatchSnapshot alone{.settings = item.servable->batching(), .sizes = {&item.batch, 1}};
  if (item.deadline) {
    alone.earliest_deadline_in = *item.deadline - now;
    alone.expected_run = item.servable->run_times().Expected(item.batch);
  }
  if (ChooseBatch(alone).take == 0) return false;
  RunAndAnswer({&item, 1}, {&now, 1});
  return true;
}

void Dispatcher::Bury(const Servable& servable, const QueueKey& key) {
  {
    MutexLock lock(mu_);
    std::optional<Entry> entry = queue_.Take(servable, key);
    if (!entry) return;
    graveyard_.push_back(std::move(*entry));
  }
  dead_or_stop_.NotifyOne();
}

bool Dispatcher::BuryExpired(MonotonicTime now) {
  const std::size_t before = graveyard_.size();
  queue_.TakeExpired(now, graveyard_);
  if (graveyard_.size() == before) return false;
  dead_or_stop_.NotifyOne();
  return true;
}

void Dispatcher::WatchFor(MonotonicTime deadline) {
  if (deadline >= watch_at_) return;
  watch_at_ = deadline;
  dead_or_stop_.NotifyOne();
}

Dispatcher::Step Dispatcher::NextStep(MonotonicTime now) {
  // First, so that the order of the servables is that of their living heads.
  BuryExpired(now);
  Step next;
  for (const Servable* servable : queue_.ByUrgency()) {
    Step step = Choose(*servable, now);
    if (!step.batch.empty()) return step;
    next.wait = std::min(next.wait, step.wait);
  }
  return next;
}

Dispatcher::Step Dispatcher::Choose(const Servable& servable, MonotonicTime now) {
  RunGroups groups(servable.batching());
  for (const auto& [key, entry] : queue_.Waiting(servable)) {
    // Of a client that has gone; about to be buried.
    if (entry.item.cancel->cancelled()) continue;
    if (!groups.Add(key, entry)) break;
  }
  Step step;
  for (const RunGroup& group : groups.groups()) {
    BatchSnapshot snapshot{.settings = servable.batching(), .sizes = group.sizes, .oldest_wait = now - group.oldest};
    if (group.deadline != MonotonicTime::max()) {
      snapshot.earliest_deadline_in = group.deadline - now;
      snapshot.expected_run = servable.run_times().Expected(group.elements);
    }
    const BatchDecision decision = ChooseBatch(snapshot);
    step.wait = std::min(step.wait, decision.wait);
    if (decision.take == 0) continue;
    step.batch.reserve(decision.take);
    for (const QueueKey& key : std::span(group.keys).first(decision.take)) {
      step.batch.push_back(std::move(*queue_.Take(servable, key)));
    }
    break;
  }
  return step;
}

void Dispatcher::LookForWork(std::uint64_t seen, PollBudget& budget) const {
  MonotonicTime now = clock_.Now();
  const MonotonicTime until = budget.Begin(now);
  if (until <= now) return;
  for (; now < until; now = clock_.Now()) {
    if (news_.load(std::memory_order_acquire) != seen) return budget.Found();
    CpuRelax();
  }
  budget.Missed();
}

void Dispatcher::Work() {
  PollBudget budget(options_.poll_window);
  while (true) {
    Step step;
    {
      MutexLock lock(mu_);
      while (true) {
        if (stopping_) return;
        try {
          step = NextStep(clock_.Now());
        } catch (const std::bad_alloc&) {
          step = {.batch = {}, .wait = kPauseWithoutMemory};
        }
        if (!step.batch.empty()) break;
        if (step.wait == std::chrono::nanoseconds::max()) {
          work_or_stop_.Wait(mu_);
        } else {
          work_or_stop_.WaitFor(mu_, step.wait);
        }
      }
      if (++running_ == options_.workers) WatchFor(queue_.EarliestDeadline());
    }
    RunBatch(std::move(step.batch));
    std::uint64_t seen = 0;
    {
      MutexLock lock(mu_);
      --running_;
      if (stopping_ || queue_.size() > 0) continue;
      seen = news_.load(std::memory_order_relaxed);
    }
    LookForWork(seen, budget);
  }
}

void Dispatcher::AnswerTheDead() {
  while (true) {
    std::vector<Entry> dead;
    {
      MutexLock lock(mu_);
      while (true) {
        if (stopping_) return;
        const MonotonicTime now = clock_.Now();
        if (watch_at_ < now) {
          BuryExpired(now);
          const MonotonicTime next = queue_.EarliestDeadline();
          watch_at_ = next == MonotonicTime::max() ? next : std::max(next, now + kWatchEvery);
        }
        dead = std::exchange(graveyard_, {});
        if (!dead.empty()) break;
        if (watch_at_ == MonotonicTime::max()) {
          dead_or_stop_.Wait(mu_);
        } else {
          // It is dead only after its deadline.
          dead_or_stop_.WaitFor(mu_, std::min<std::chrono::nanoseconds>(watch_at_ - now, kLongestSleep) + kTick);
        }
      }
    }
    for (Entry& entry : dead) {
      entry.on_cancel = {};
      AnswerDead(entry.item);
    }
  }
}

void Dispatcher::AnswerDead(WorkItem& item) const {
  try {
    // A front end may cancel what is late, too; whoever comes first, it is late.
    if (item.deadline && *item.deadline <= clock_.Now()) {
      Answer(item, Fail(ErrorCode::kDeadlineExceeded, "model '{}': the deadline passed while the request waited",
                        item.servable->name()));
    } else {
      Answer(item, Fail(ErrorCode::kCancelled, "the client has gone"));
    }
  } catch (const std::bad_alloc&) {
    Answer(item, std::unexpected(OutOfMemory()));
  }
}

void Dispatcher::RunBatch(std::vector<Entry> entries) {
  std::vector<WorkItem> items;
  std::vector<MonotonicTime> queued;
  try {
    items.reserve(entries.size());
    queued.reserve(entries.size());
  } catch (const std::bad_alloc&) {
    for (Entry& entry : entries) {
      entry.on_cancel = {};
      Answer(entry.item, std::unexpected(OutOfMemory()));
    }
    return;
  }
  for (Entry& entry : entries) {
    entry.on_cancel = {};
    items.push_back(std::move(entry.item));
    queued.push_back(entry.queued);
  }
  RunAndAnswer(items, queued);
}

void Dispatcher::RunAndAnswer(std::span<WorkItem> items, std::span<const MonotonicTime> queued) {
  try {
    RunTogether(items, queued);
  } catch (const std::bad_alloc&) {
    for (WorkItem& item : items) {
      if (item.done) Answer(item, std::unexpected(OutOfMemory()));
    }
  }
}

Dispatcher::Run Dispatcher::Execute(std::span<const WorkItem> items) const {
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
    if (ran) {
      servable.run_times().Observe(Elements(items), computed - ready);
      run.outputs = SplitOutputs(items, *std::move(ran));
    } else {
      run.ran = std::unexpected(std::move(ran).error());
    }
  } catch (const std::bad_alloc&) {
    run.ran = Fail(ErrorCode::kUnavailable, "model '{}': there is not enough memory for this run", servable.name());
  }
  run.timing = {.queue = {},
                .compute_input = ready - run.start,
                .compute_infer = computed - ready,
                .compute_output = clock_.Now() - computed};
  return run;
}

void Dispatcher::RunTogether(std::span<WorkItem> items, std::span<const MonotonicTime> queued) {
  Run run = Execute(items);
  if (run.ran) {
    const std::shared_ptr<Servable>& servable = items.front().servable;
    const std::int64_t batch = Elements(items);
    servable->statistics().RecordExecution(static_cast<std::uint64_t>(batch), run.timing, clock_.WallNow());
    if (options_.on_batch) options_.on_batch(*servable, batch);
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
    if (items[i].done) RunApart(items[i], queued[i]);
  }
}

void Dispatcher::RunApart(WorkItem& item, MonotonicTime queued) {
  if (IsDead(item, clock_.Now())) {
    AnswerDead(item);
  } else {
    RunTogether({&item, 1}, {&queued, 1});
  }
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
