#include "colocation/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "api/base/thread_name.h"
#include "colocation/run_groups.h"
#include "colocation/work_forecast.h"

namespace tandem {
namespace {

// How often the dead are looked for at most: an answer that says "too late" need not be more punctual.
constexpr std::chrono::milliseconds kWatchEvery{5};
// A deadline may lie further ahead than a timer can be set, or times can be added to.
constexpr std::chrono::hours kLongestSleep{1};
constexpr std::chrono::microseconds kTick{1};
// Until a worker that found no memory to choose its work looks again.
constexpr std::chrono::milliseconds kPauseWithoutMemory{10};

// Why a request was refused, from what the refusal was made from.
Admitted RefusalOf(const Error& error, const AdmissionSnapshot& seen) {
  if (error.code == ErrorCode::kCancelled) return Admitted::kGone;
  if (seen.max_queued == 0) return Admitted::kStopping;
  if (error.code == ErrorCode::kDeadlineExceeded) return Admitted::kLate;
  if (seen.max_queued_model > 0 && seen.queued_model >= seen.max_queued_model) return Admitted::kModelFull;
  return seen.queued >= seen.max_queued ? Admitted::kFull : Admitted::kHopeless;
}

}  // namespace

Dispatcher::Dispatcher(const Clock& clock, const AdmissionPolicy& admission, DispatcherOptions options)
    : clock_(clock),
      admission_(admission),
      options_(std::move(options)),
      runner_(clock, options_.on_run, options_.recorder) {
  run_ends_.resize(static_cast<std::size_t>(options_.workers), MonotonicTime::min());
  for (std::size_t i = 0; i < run_ends_.size(); ++i) {
    workers_.emplace_back([this, i] {
      NameThread("worker-" + std::to_string(i));
      Work(i);
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

void Dispatcher::Record(std::uint64_t request, std::int64_t elements, Admitted verdict,
                        const AdmissionSnapshot& seen) const {
  if (request == 0 || options_.recorder == nullptr) return;
  RequestAdmission admission{.at = seen.now,
                             .request = request,
                             .verdict = verdict,
                             .left = {},
                             .ahead = seen.work_ahead,
                             .run = {},
                             .weight = admission_.WeightOf(seen),
                             .waiting = static_cast<std::int64_t>(seen.queued),
                             .elements = elements};
  if (seen.deadline) admission.left = *seen.deadline - seen.now;
  if (seen.run) admission.run = seen.run->high;
  options_.recorder->Write(admission);
}

Status Dispatcher::Admit(const WorkItem& item, const QueueKey& key, MonotonicTime now, AdmissionSnapshot& seen) {
  seen = {.now = now};
  if (stopping_) return Fail(ErrorCode::kUnavailable, "the server is shutting down");
  if (item.cancel->cancelled()) return Fail(ErrorCode::kCancelled, "the client has gone");
  seen = Look(*item.servable, item.batch, key, now);
  seen.queued = queue_.size();
  seen.queued_model = queue_.size(*item.servable);
  return Judge(*item.servable, seen);
}

AdmissionSnapshot Dispatcher::Look(const Servable& servable, std::int64_t elements, const QueueKey& key,
                                   MonotonicTime now) {
  AdmissionSnapshot snapshot{.model = servable.name(),
                             .now = now,
                             .deadline = std::nullopt,
                             .max_queued = options_.max_queued,
                             .max_queued_model = servable.batching().max_queue_size};
  if (key.deadline == MonotonicTime::max()) return snapshot;
  snapshot.deadline = key.deadline;
  const auto left = std::min<std::chrono::nanoseconds>(key.deadline - now, kLongestSleep);
  const Forecast forecast = ForecastInQueue(queue_, shares_, space_, servable, elements, key, options_.workers * left);
  rests_.clear();
  for (const MonotonicTime end : run_ends_) rests_.push_back(end > now ? end - now : std::chrono::nanoseconds(0));
  snapshot.work_ahead = UntilTurn(forecast.ahead, rests_);
  snapshot.run = forecast.run;
  return snapshot;
}

Status Dispatcher::Judge(const Servable& servable, AdmissionSnapshot snapshot) const {
  Status judged = admission_.Admit(snapshot);
  if (judged || !snapshot.run) return judged;
  snapshot.run.reset();
  if (admission_.Admit(snapshot)) servable.latency().NoteRefusal(snapshot.now);
  return judged;
}

Status Dispatcher::Foresee(const Servable& servable, std::uint64_t priority, MonotonicTime deadline) {
  const MonotonicTime now = clock_.Now();
  const QueueKey key{
      .priority = priority, .deadline = deadline, .sequence = next_sequence_.load(std::memory_order_relaxed)};
  MutexLock lock(mu_);
  Status judged = Judge(servable, Look(servable, 1, key, now));
  if (!judged && BuryExpired(now)) judged = Judge(servable, Look(servable, 1, key, now));
  return judged;
}

void Dispatcher::Submit(WorkItem item) {
  const QueueKey key{.priority = item.priority,
                     .deadline = item.deadline.value_or(MonotonicTime::max()),
                     .sequence = next_sequence_.fetch_add(1, std::memory_order_relaxed)};
  Entry entry{.item = std::move(item), .queued = clock_.Now()};
  const std::uint64_t request = entry.item.number;
  const std::int64_t elements = entry.item.batch;
  AdmissionSnapshot seen;
  Status queued;
  try {
    if (RunHere(entry.item, key, entry.queued)) return;
    // Registered before it is queued, outside our lock. A cancellation in between is seen on admission.
    entry.on_cancel =
        entry.item.cancel->OnCancel([this, servable = entry.item.servable.get(), key] { Bury(*servable, key); });
    queued = Enqueue(key, entry, seen);
  } catch (const std::bad_alloc&) {
    entry.on_cancel = {};
    return AnswerOutOfMemory(entry.item);
  }
  if (queued) {
    work_or_stop_.NotifyOne();
    Record(request, elements, Admitted::kQueued, seen);
  } else {
    entry.on_cancel = {};
    Record(request, elements, RefusalOf(queued.error(), seen), seen);
    Answer(entry.item, std::unexpected(std::move(queued).error()));
  }
}

Status Dispatcher::Enqueue(const QueueKey& key, Entry& entry, AdmissionSnapshot& seen) {
  MutexLock lock(mu_);
  Status admitted = Admit(entry.item, key, entry.queued, seen);
  if (!admitted && BuryExpired(entry.queued)) admitted = Admit(entry.item, key, entry.queued, seen);
  if (!admitted) return admitted;
  queue_.Push(key, std::move(entry));
  news_.fetch_add(1, std::memory_order_release);
  if (AllBusy()) WatchFor(key.deadline);
  return {};
}

bool Dispatcher::RunHere(WorkItem& item, const QueueKey& key, MonotonicTime now) {
  if (IsDead(item, now) || !item.servable->short_runs().Expects(InputBytes(item.inputs))) return false;
  AdmissionSnapshot seen;
  {
    MutexLock lock(mu_);
    if (running_ > 0 || queue_.size() > 0 || !Admit(item, key, now, seen)) return false;
  }
  if (item.servable->batching().max_queue_delay.count() > 0) {
    RunGroup alone{.first = &item};
    alone.Add(key, item.batch, now);
    if (Decide(*item.servable, alone, now).take == 0) return false;
  }
  Record(item.number, item.batch, Admitted::kAtOnce, seen);
  runner_.RunAndAnswer({&item, 1}, {&now, 1}, kFrontEnd);
  return true;
}

void Dispatcher::Bury(const Servable& servable, const QueueKey& key) {
  {
    MutexLock lock(mu_);
    try {
      RequestQueue::MakeRoom(graveyard_, 1);
    } catch (const std::bad_alloc&) {
      return;  // It is found when its turn comes.
    }
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
  const auto level = shares_.most() < kMostBehind ? std::nullopt : queue_.MostUrgentLevel();
  if (level) {
    queue_.FlowsOf(*level, flows_);
    if (const Flow* starved = shares_.FurthestBehind(flows_)) {
      Step step = Choose(*starved->id.servable, starved, now);
      if (!step.batch.empty()) return step;
    }
  }
  for (const Servable* servable : queue_.ByUrgency()) {
    Step step = Choose(*servable, nullptr, now);
    if (!step.batch.empty()) return step;
    next.wait = std::min(next.wait, step.wait);
  }
  return next;
}

void Dispatcher::CountBegin(FlowRun& run, std::chrono::nanoseconds expected) {
  if (queue_.size() == 0) return;
  try {
    queue_.FlowsOf(run.id.level, flows_);
    shares_.Begin(flows_, run, expected);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    // Shares are not that exact.
  }
}

void Dispatcher::CountEnd(const FlowRun& run, std::chrono::nanoseconds took) {
  if (queue_.size() == 0) return shares_.Clear();
  try {
    queue_.FlowsOf(run.id.level, flows_);
    shares_.End(flows_, run, took);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
  if (!queue_.Waits(run.id)) shares_.Forget(run.id);
  shares_.Fade(took, [&queue = queue_](const FlowId& flow) { return queue.Waits(flow); });
}

Dispatcher::Step Dispatcher::Choose(const Servable& servable, const Flow* flow, MonotonicTime now) {
  RunGroups groups(servable.batching());
  std::vector<QueueKey> hopeless;
  std::int64_t size = 0;
  std::optional<RunPrediction> run;  // Of that size.
  const RequestQueue::ModelQueue& waiting = queue_.Waiting(servable);
  for (auto at = flow == nullptr ? waiting.begin() : waiting.find(flow->first); at != waiting.end(); ++at) {
    const auto& [key, entry] = *at;
    if (entry.item.deadline && entry.item.batch != size) {
      size = entry.item.batch;
      run = servable.latency().Predict(size);
    }
    const bool late = entry.item.deadline && admission_.IsHopeless(now, key.deadline, run);
    if (late || entry.item.cancel->cancelled()) {
      hopeless.push_back(key);
    } else if (!groups.Add(key, entry)) {
      break;
    }
  }
  BuryHopeless(servable, hopeless);
  Step step;
  for (const RunGroup& group : groups.groups()) {
    const BatchDecision decision = Decide(servable, group, now);
    step.wait = std::min(step.wait, decision.wait);
    if (decision.take == 0) continue;
    step.flow = {.id = FlowOf(servable, group.keys.front()), .weight = servable.batching().weight};
    // Other requests of the model are not so far behind.
    if (flow != nullptr && step.flow.id != flow->id) continue;
    step.batch.reserve(decision.take);
    std::int64_t elements = 0;
    for (std::size_t i = 0; i < decision.take; ++i) {
      step.batch.push_back(std::move(*queue_.Take(servable, group.keys[i])));
      elements += group.sizes[i];
    }
    run = servable.latency().Predict(elements);
    const std::chrono::nanoseconds expected = run ? run->typical : std::chrono::nanoseconds(0);
    step.begins = now;
    step.ends = now + expected;
    CountBegin(step.flow, expected);
    break;
  }
  return step;
}

BatchDecision Dispatcher::Decide(const Servable& servable, const RunGroup& group, MonotonicTime now) {
  BatchSnapshot snapshot{.settings = servable.batching(), .sizes = group.sizes, .oldest_wait = now - group.oldest};
  std::vector<std::chrono::nanoseconds> left;
  std::vector<std::chrono::nanoseconds> runs;
  if (group.has_deadline) {
    std::int64_t elements = 0;
    std::chrono::nanoseconds longest{0};
    for (std::size_t i = 0; i < group.sizes.size(); ++i) {
      const MonotonicTime deadline = group.keys[i].deadline;
      left.push_back(deadline == MonotonicTime::max() ? std::chrono::nanoseconds::max() : deadline - now);
      elements += group.sizes[i];
      // Sizes that were never run are taken to be as short as the last that was: else they never would be.
      const auto run = servable.latency().Predict(elements);
      if (run && !run->guessed()) longest = std::max(longest, run->high);
      runs.push_back(longest);
    }
    if (longest.count() == 0) runs.clear();
  }
  snapshot.left = left;
  snapshot.runs = runs;
  return ChooseBatch(snapshot);
}

void Dispatcher::BuryHopeless(const Servable& servable, std::span<const QueueKey> keys) {
  if (keys.empty()) return;
  RequestQueue::MakeRoom(graveyard_, keys.size());
  for (const QueueKey& key : keys) graveyard_.push_back(std::move(*queue_.Take(servable, key)));
  dead_or_stop_.NotifyOne();
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

void Dispatcher::Work(std::size_t worker) {
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
      run_ends_[worker] = step.ends;
      ++running_;
      if (AllBusy()) WatchFor(queue_.EarliestDeadline());
    }
    RunBatch(std::move(step.batch), static_cast<std::uint16_t>(worker));
    std::uint64_t seen = 0;
    {
      MutexLock lock(mu_);
      run_ends_[worker] = MonotonicTime::min();
      --running_;
      CountEnd(step.flow, clock_.Now() - step.begins);
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
          try {
            BuryExpired(now);
          } catch (const std::bad_alloc&) {
            // Those that are left are there the next time, too.
          }
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
      AnswerDead(entry.item, clock_.Now());
    }
  }
}

void Dispatcher::RunBatch(std::vector<Entry> entries, std::uint16_t worker) {
  std::vector<WorkItem> items;
  std::vector<MonotonicTime> queued;
  try {
    items.reserve(entries.size());
    queued.reserve(entries.size());
  } catch (const std::bad_alloc&) {
    for (Entry& entry : entries) {
      entry.on_cancel = {};
      AnswerOutOfMemory(entry.item);
    }
    return;
  }
  for (Entry& entry : entries) {
    entry.on_cancel = {};
    items.push_back(std::move(entry.item));
    queued.push_back(entry.queued);
  }
  runner_.RunAndAnswer(items, queued, worker);
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
