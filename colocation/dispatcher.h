#pragma once

#include <atomic>
#include <span>
#include <thread>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/poll_budget.h"
#include "colocation/admission.h"
#include "colocation/batch_policy.h"
#include "colocation/batch_runner.h"
#include "colocation/core_seats.h"
#include "colocation/device_slots.h"
#include "colocation/fair_share.h"
#include "colocation/queue_forecast.h"
#include "colocation/request_queue.h"
#include "colocation/run_groups.h"
#include "colocation/run_width.h"
#include "colocation/serving_sign.h"
#include "colocation/work_item.h"
#include "profiler/flight_recorder.h"

namespace tandem {

struct DispatcherOptions {
  int workers = 1;  // Runs under way at once on this device.
  // There is a worker for each of the device's threads, and a run has one thread or all of them, whatever lets what
  // waits end sooner (colocation/run_width.h). Else runs have all threads, and share them with the others under way.
  bool widths = false;
  std::size_t max_queued = 8192;
  std::chrono::nanoseconds poll_window{0};  // How long a worker that has answered looks for more before it sleeps.
  BatchRunner::OnRun on_run;                // May be empty.
  FlightRecorder* recorder = nullptr;       // Borrowed, as the next; both may be null.
  TrainingToll* toll = nullptr;
  ServingSign* sign = nullptr;  // For trainers; borrowed, may be null.
  CoreSeats* seats = nullptr;   // Of runs; borrowed, may be null.
};

// The queue of one device and the threads that empty it: orders, batches, runs, answers. Thread-safe. Every submitted
// item is answered exactly once, also when the dispatcher stops. Workers run what is alive; a thread of its own answers
// what is dead (its client has gone, or its deadline has passed), also while every worker is busy.
//
// A request that finds the device free, and whose run is expected to take less time than waking a worker, is run by the
// thread that submits it: nothing is there to be ordered or batched.
class Dispatcher {
 public:
  // Borrows clock and policy, which must outlive it.
  Dispatcher(const Clock& clock, const AdmissionPolicy& admission, DispatcherOptions options);
  // Answers what still waits with kUnavailable and joins the workers.
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // May answer before it returns.
  void Submit(WorkItem item) EXCLUDES(mu_);

  // Whether a request of at least one element can be in time by what is known now; else why not. For one that is not
  // here yet: whether it finds room then is not asked. `shortfall` tells how far one that is refused is from that.
  [[nodiscard]] Status Foresee(const Servable& servable, std::uint64_t priority, MonotonicTime deadline,
                               std::optional<Shortfall>& shortfall) EXCLUDES(mu_);

  [[nodiscard]] std::size_t queued() const EXCLUDES(mu_);
  [[nodiscard]] std::size_t queued(const Servable& servable) const EXCLUDES(mu_);

 private:
  using Entry = RequestQueue::Entry;

  // What a worker does next: run the batch or, when that is empty, sleep at most `wait`.
  struct Step {
    std::vector<Entry> batch;
    std::chrono::nanoseconds wait = std::chrono::nanoseconds::max();
    bool blocked = false;  // It waits for all threads: nobody less urgent goes before it.
    RunWidth width = RunWidth::kAll;
    MonotonicTime begins;
    MonotonicTime ends;  // When the run is expected to.
    FlowRun flow;        // What it counts for.
    MonotonicTime free_since;
    std::size_t seat = 0;
  };

  void Work(std::size_t worker);
  // Takes what to do next, sleeping until there is something; false when all is over.
  [[nodiscard]] bool TakeStep(std::size_t worker, Step& step) EXCLUDES(mu_);
  // Waits without sleeping until there are other news than `seen`, for as long as the budget allows.
  void LookForWork(std::uint64_t seen, PollBudget& budget) const;
  void AnswerTheDead();
  // Has a worker look at what waits now, unless none could do anything or one does so anyway.
  void WakeWorker() REQUIRES(mu_);
  // When what runs leaves somebody waiting, the dead among them have to be looked for.
  void WatchWhileRunning(MonotonicTime deadline) REQUIRES(mu_);
  // `seen` is what the decision was made from.
  [[nodiscard]] Status Admit(const WorkItem& item, const QueueKey& key, MonotonicTime now, AdmissionSnapshot& seen)
      REQUIRES(mu_);
  // When the turn of a request of so many elements comes, if that is within that time, and what its run takes.
  [[nodiscard]] Forecast Foretell(const Servable& servable, std::int64_t elements, const QueueKey& key,
                                  MonotonicTime now, std::chrono::nanoseconds within) REQUIRES(mu_);
  // What is known of a request of so many elements, but for the room that there is.
  [[nodiscard]] AdmissionSnapshot Look(const Servable& servable, std::int64_t elements, const QueueKey& key,
                                       MonotonicTime now) REQUIRES(mu_);
  // Asks the policy. What is known of the model beforehand begins to age when that was the reason to refuse.
  [[nodiscard]] Status Judge(const Servable& servable, AdmissionSnapshot snapshot) const;
  // Lets it wait, or leaves it as it is and says why.
  [[nodiscard]] Status Enqueue(const QueueKey& key, Entry& entry, AdmissionSnapshot& seen) EXCLUDES(mu_);
  // Tells the recorder how a request was met.
  void Record(std::uint64_t request, std::int64_t elements, Admitted verdict, const AdmissionSnapshot& seen) const;
  // Runs and answers the item on this thread, or leaves it as it is and says no.
  [[nodiscard]] bool RunHere(WorkItem& item, const QueueKey& key, MonotonicTime now) EXCLUDES(mu_);
  [[nodiscard]] Step NextStep(MonotonicTime now) REQUIRES(mu_);
  // What to run of one servable or, with one, of a flow of it (and with that, whatever can share its run), or how long
  // to put that off.
  [[nodiscard]] Step Choose(const Servable& servable, const Flow* flow, MonotonicTime now) REQUIRES(mu_);
  // When no run is expected to have a thread any more; `now` where runs have no widths.
  [[nodiscard]] MonotonicTime AllFree(MonotonicTime now) REQUIRES(mu_);
  // How many threads a run over so many elements gets, that could begin now; sets `step.wait` if it has to wait.
  [[nodiscard]] WidthChoice WidthFor(const Servable& servable, std::int64_t elements, MonotonicTime deadline,
                                     MonotonicTime now, Step& step) REQUIRES(mu_);
  // Tells trainers how many threads runs have.
  void ShowRuns() REQUIRES(mu_);
  // What a run of that time is of the device's.
  [[nodiscard]] std::chrono::nanoseconds DeviceTime(RunWidth width, std::chrono::nanoseconds time) const;
  // Counts a run against the shares of what waits.
  void CountBegin(FlowRun& run, std::chrono::nanoseconds expected) REQUIRES(mu_);
  void CountEnd(const FlowRun& run, std::chrono::nanoseconds took) REQUIRES(mu_);
  [[nodiscard]] static BatchDecision Decide(const Servable& servable, const RunGroup& group, MonotonicTime now);
  // Frees the slots of what would be computed in vain, or for nobody.
  void BuryHopeless(const Servable& servable, std::span<const QueueKey> keys) REQUIRES(mu_);
  // Frees the slot of a request whose client has gone. Runs on the cancelling thread, under the token's lock.
  void Bury(const Servable& servable, const QueueKey& key) EXCLUDES(mu_);
  // Frees the slots of what should have been done by now; whether there was any.
  bool BuryExpired(MonotonicTime now) REQUIRES(mu_);
  void RunBatch(std::vector<Entry> entries, RunPlace place);

  // Constant after construction.
  const Clock& clock_;
  const AdmissionPolicy& admission_;
  const DispatcherOptions options_;
  const BatchRunner runner_;

  std::atomic<std::uint64_t> next_sequence_{0};
  std::atomic<std::uint64_t> news_{
      0};  // Counts what a worker looks for: what is queued, and the stop. Written under mu_.

  mutable Mutex mu_;
  CondVar work_or_stop_;
  CondVar dead_or_stop_;
  RequestQueue queue_ GUARDED_BY(mu_);
  ShareLedger shares_ GUARDED_BY(mu_);
  // Of the decision at hand.
  std::vector<Flow> flows_ GUARDED_BY(mu_);
  ForecastSpace space_ GUARDED_BY(mu_);
  std::vector<std::chrono::nanoseconds> rests_ GUARDED_BY(mu_);
  // Out of the queue, to be answered: not by who buries them, as a callback must not release its own registration.
  std::vector<Entry> graveyard_ GUARDED_BY(mu_);
  MonotonicTime watch_at_ GUARDED_BY(mu_) = MonotonicTime::max();  // When the dead are looked for next.
  DeviceSlots slots_ GUARDED_BY(mu_);
  bool looking_ GUARDED_BY(mu_) = false;  // A worker looks for work without sleeping, and will see what comes.
  bool stopping_ GUARDED_BY(mu_) = false;

  // Last: they use all of the above.
  std::vector<std::jthread> workers_;
  std::jthread undertaker_;
};

}  // namespace tandem
