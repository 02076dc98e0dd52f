// How requests come to the dispatcher: let in, or refused with what that was decided from.

#include <algorithm>
#include <new>
#include <utility>

#include "colocation/dispatcher.h"
#include "colocation/queue_forecast.h"
#include "colocation/work_forecast.h"

namespace tandem {
namespace {

// A deadline may lie further ahead than times can be added to.
constexpr std::chrono::hours kFarthest{1};

// Why a request was refused, from what the refusal was made from.
Admitted RefusalOf(const Error& error, const AdmissionSnapshot& seen) {
  if (error.code == ErrorCode::kCancelled) return Admitted::kGone;
  if (seen.max_queued == 0) return Admitted::kStopping;
  if (error.code == ErrorCode::kDeadlineExceeded) return Admitted::kLate;
  if (seen.max_queued_model > 0 && seen.queued_model >= seen.max_queued_model) return Admitted::kModelFull;
  return seen.queued >= seen.max_queued ? Admitted::kFull : Admitted::kHopeless;
}

bool WouldBeLetInLater(Admitted verdict) {
  return verdict == Admitted::kModelFull || verdict == Admitted::kFull || verdict == Admitted::kHopeless;
}

}  // namespace

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
  Status judged = Judge(*item.servable, seen);
  // Of what has no deadline nobody has asked yet how long it would wait.
  if (!judged && !seen.deadline) {
    seen.work_ahead = Foretell(*item.servable, item.batch, key, now, kLongestRetry).ahead;
  }
  return judged;
}

Forecast Dispatcher::Foretell(const Servable& servable, std::int64_t elements, const QueueKey& key, MonotonicTime now,
                              std::chrono::nanoseconds within) {
  const int workers = slots_.workers();
  slots_.Rests(now, rests_);
  if (!slots_.widths()) {
    Forecast forecast = ForecastInQueue(queue_, shares_, space_, servable, elements, key, workers * within);
    forecast.ahead = UntilTurn(forecast.ahead, rests_);
    return forecast;
  }
  Forecast wide = ForecastInQueue(queue_, shares_, space_, servable, elements, key, within);
  wide.ahead += std::ranges::max(rests_);
  if (!wide.run || !servable.can_be_narrow() || wide.ahead.count() == 0) return wide;
  Forecast narrow =
      ForecastInQueue(queue_, shares_, space_, servable, elements, key, within, {RunWidth::kOne, workers});
  narrow.ahead = UntilTurn(workers * narrow.ahead, rests_);
  // What nobody has tried lately is not relied upon.
  if (!narrow.run || IsDoubtful(*narrow.run, now)) return wide;
  return narrow.ahead + narrow.run->high < wide.ahead + wide.run->high ? narrow : wide;
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
  const auto left = std::min<std::chrono::nanoseconds>(key.deadline - now, kFarthest);
  const Forecast forecast = Foretell(servable, elements, key, now, left);
  snapshot.work_ahead = forecast.ahead;
  snapshot.run = forecast.run;
  return snapshot;
}

Status Dispatcher::Judge(const Servable& servable, AdmissionSnapshot snapshot) const {
  Status judged = admission_.Admit(snapshot);
  if (judged || !snapshot.run) return judged;
  snapshot.run.reset();
  if (admission_.Admit(snapshot)) {
    for (const RunWidth width : {RunWidth::kAll, RunWidth::kOne}) servable.latency(width).BeginToAge(snapshot.now);
  }
  return judged;
}

Status Dispatcher::Foresee(const Servable& servable, std::uint64_t priority, MonotonicTime deadline,
                           std::optional<Shortfall>& shortfall) {
  const MonotonicTime now = clock_.Now();
  const QueueKey key{
      .priority = priority, .deadline = deadline, .sequence = next_sequence_.load(std::memory_order_relaxed)};
  MutexLock lock(mu_);
  AdmissionSnapshot seen = Look(servable, 1, key, now);
  Status judged = Judge(servable, seen);
  if (!judged && BuryExpired(now)) {
    seen = Look(servable, 1, key, now);
    judged = Judge(servable, seen);
  }
  if (!judged && judged.error().code == ErrorCode::kUnavailable) {
    shortfall = ShortfallOf(seen, admission_.WeightOf(seen), servable.Alone(1, now));
    judged.error().retry_after = RetryAfter(seen, admission_.WeightOf(seen));
  }
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
    Record(request, elements, Admitted::kQueued, seen);
  } else {
    entry.on_cancel = {};
    const Admitted verdict = RefusalOf(queued.error(), seen);
    if (verdict == Admitted::kHopeless && entry.item.shortfall != nullptr) {
      const AloneTime alone = entry.item.servable->Alone(elements, entry.queued);
      *entry.item.shortfall = ShortfallOf(seen, admission_.WeightOf(seen), alone);
    }
    if (WouldBeLetInLater(verdict)) queued.error().retry_after = RetryAfter(seen, admission_.WeightOf(seen));
    Record(request, elements, verdict, seen);
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
  WakeWorker();
  WatchWhileRunning(key.deadline);
  return {};
}

}  // namespace tandem
