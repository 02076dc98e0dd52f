#include "colocation/dispatcher.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
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
// Everything that waits stands before it.
constexpr QueueKey kBehindAll{.priority = std::numeric_limits<std::uint64_t>::max(),
                              .deadline = MonotonicTime::max(),
                              .sequence = std::numeric_limits<std::uint64_t>::max()};

}  // namespace

Dispatcher::Dispatcher(const Clock& clock, const AdmissionPolicy& admission, DispatcherOptions options)
    : clock_(clock),
      admission_(admission),
      options_(std::move(options)),
      runner_(clock, options_.on_run, options_.recorder, options_.toll),
      slots_(options_.workers, options_.widths) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(options_.workers); ++i) {
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

bool Dispatcher::RunHere(WorkItem& item, const QueueKey& key, MonotonicTime now) {
  if (IsDead(item, now) || !item.servable->short_runs().Expects(InputBytes(item.inputs))) return false;
  AdmissionSnapshot seen;
  {
    MutexLock lock(mu_);
    if (slots_.running() > 0 || queue_.size() > 0 || !Admit(item, key, now, seen)) return false;
  }
  if (item.servable->batching().max_queue_delay.count() > 0) {
    RunGroup alone{.first = &item};
    alone.Add(key, item.batch, now);
    if (Decide(*item.servable, alone, now).take == 0) return false;
  }
  Record(item.number, item.batch, Admitted::kAtOnce, seen);
  runner_.RunAndAnswer({&item, 1}, {&now, 1}, {.worker = kFrontEnd});
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
    // It may have been what others waited behind.
    WakeWorker();
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

void Dispatcher::WatchWhileRunning(MonotonicTime deadline) {
  if (slots_.running() == 0 || deadline >= watch_at_) return;
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
      if (!step.batch.empty() || step.blocked) return step;
    }
  }
  for (const Servable* servable : queue_.ByUrgency()) {
    Step step = Choose(*servable, nullptr, now);
    if (!step.batch.empty() || step.blocked) return step;
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
  const RequestQueue* const queue = &queue_;
  shares_.Fade(took, [queue](const FlowId& flow) { return queue->Waits(flow); });
}

Dispatcher::Step Dispatcher::Choose(const Servable& servable, const Flow* flow, MonotonicTime now) {
  RunGroups groups(servable.batching());
  std::vector<QueueKey> hopeless;
  std::int64_t size = 0;
  RunWays ways;  // Of that size; where nobody has a deadline they are not asked for.
  const RequestQueue::ModelQueue& waiting = queue_.Waiting(servable);
  for (auto at = flow == nullptr ? waiting.begin() : waiting.find(flow->first); at != waiting.end(); ++at) {
    const auto& [key, entry] = *at;
    if (entry.item.deadline && entry.item.batch != size) {
      if (size == 0) ways.all_free = AllFree(now);
      size = entry.item.batch;
      ways.wide = servable.Predict(size);
      ways.narrow_possible = slots_.widths() && servable.can_be_narrow();
      if (ways.narrow_possible) ways.narrow = servable.Predict(size, RunWidth::kOne);
    }
    const bool late = entry.item.deadline && IsHopeless(admission_, now, key.deadline, ways);
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
    const std::span<const std::int64_t> sizes = std::span(group.sizes).first(decision.take);
    const std::int64_t elements = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    if (slots_.widths()) {
      const WidthChoice choice = WidthFor(servable, elements, group.keys.front().deadline, now, step);
      step.blocked = choice == WidthChoice::kWait;
      if (step.blocked) break;
      step.width = choice == WidthChoice::kOne ? RunWidth::kOne : RunWidth::kAll;
    }
    step.batch.reserve(decision.take);
    for (const QueueKey& key : std::span(group.keys).first(decision.take)) {
      step.batch.push_back(std::move(*queue_.Take(servable, key)));
    }
    const auto run = servable.Predict(elements, step.width);
    const std::chrono::nanoseconds expected = run ? run->typical : std::chrono::nanoseconds(0);
    step.begins = now;
    step.ends = now + expected;
    CountBegin(step.flow, DeviceTime(step.width, expected));
    break;
  }
  return step;
}

MonotonicTime Dispatcher::AllFree(MonotonicTime now) {
  if (!slots_.widths()) return now;
  slots_.Rests(now, rests_);
  return now + std::ranges::max(rests_);
}

WidthChoice Dispatcher::WidthFor(const Servable& servable, std::int64_t elements, MonotonicTime deadline,
                                 MonotonicTime now, Step& step) {
  const MonotonicTime overdue = slots_.OverdueAt();
  slots_.Rests(now, rests_);
  WidthSnapshot snapshot{.now = now,
                         .rests = rests_,
                         .running = slots_.running(),
                         .overdue = overdue <= now,
                         .narrow_possible = servable.can_be_narrow(),
                         .wide = servable.Predict(elements),
                         .narrow = servable.Predict(elements, RunWidth::kOne),
                         .runs = 0};
  if (deadline != MonotonicTime::max()) snapshot.left = deadline - now;
  for (const auto& [other, work] : queue_.Before(kBehindAll)) {
    snapshot.runs += RunsOf(*other, work);
    snapshot.all_wide += TimeOf(*other, work);
    snapshot.all_narrow += slots_.workers() * TimeOf(*other, work, {RunWidth::kOne, slots_.workers()});
  }
  const WidthChoice choice = ChooseWidth(snapshot);
  if (choice == WidthChoice::kWait && snapshot.narrow_possible) step.wait = overdue - now;
  return choice;
}

void Dispatcher::ShowRuns() {
  if (options_.sign != nullptr) options_.sign->Show(slots_.taken());
}

std::chrono::nanoseconds Dispatcher::DeviceTime(RunWidth width, std::chrono::nanoseconds time) const {
  return width == RunWidth::kOne ? time / options_.workers : time;
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
      const auto run = servable.Predict(elements);
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

void Dispatcher::WakeWorker() {
  // One that looks without sleeping sees a single request by itself.
  if (slots_.full() || queue_.size() <= (looking_ ? 1U : 0U)) return;
  work_or_stop_.NotifyOne();
}

bool Dispatcher::TakeStep(std::size_t worker, Step& step) {
  MutexLock lock(mu_);
  while (true) {
    if (stopping_) return false;
    step = {};
    if (!slots_.full()) {
      try {
        step = NextStep(clock_.Now());
      } catch (const std::bad_alloc&) {
        step = {.batch = {}, .wait = kPauseWithoutMemory};
      }
    }
    if (!step.batch.empty()) break;
    if (step.wait == std::chrono::nanoseconds::max()) {
      work_or_stop_.Wait(mu_);
    } else {
      work_or_stop_.WaitFor(mu_, step.wait);
    }
  }
  step.free_since = slots_.free_since();
  step.seat = slots_.Begin(worker, step.width, step.begins, step.ends);
  ShowRuns();
  WakeWorker();
  WatchWhileRunning(queue_.EarliestDeadline());
  return true;
}

void Dispatcher::Work(std::size_t worker) {
  PollBudget budget(options_.poll_window);
  CoreSitter sitter(options_.seats);
  for (Step step; TakeStep(worker, step);) {
    sitter.Sit(step.seat);
    RunBatch(std::move(step.batch), {.worker = static_cast<std::uint16_t>(worker),
                                     .width = step.width,
                                     .exclusive = options_.widths && step.width == RunWidth::kAll,
                                     .free_since = step.free_since});
    std::uint64_t seen = 0;
    {
      MutexLock lock(mu_);
      const MonotonicTime now = clock_.Now();
      slots_.End(worker, now);
      ShowRuns();
      CountEnd(step.flow, DeviceTime(step.width, now - step.begins));
      if (stopping_ || queue_.size() > 0 || looking_) continue;
      looking_ = true;
      seen = news_.load(std::memory_order_relaxed);
    }
    LookForWork(seen, budget);
    MutexLock lock(mu_);
    looking_ = false;
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
            if (BuryExpired(now)) WakeWorker();
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

void Dispatcher::RunBatch(std::vector<Entry> entries, RunPlace place) {
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
  runner_.RunAndAnswer(items, queued, place);
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
