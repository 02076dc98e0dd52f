#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "colocation/admission.h"
#include "colocation/batch_policy.h"
#include "colocation/request_queue.h"
#include "colocation/work_item.h"

namespace tandem {

struct DispatcherOptions {
  int workers = 1;  // Runs under way at once on this device.
  std::size_t max_queued = 8192;
  // Told of every run: model, elements. Called by the thread that ran it; may be empty.
  std::function<void(const Servable&, std::int64_t batch)> on_batch;
};

// The queue of one device and the threads that empty it: orders, batches, runs, answers. Thread-safe. Every submitted
// item is answered exactly once, also when the dispatcher stops.
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

  // Waits until nothing is queued or running, or the time is over; true when it became idle.
  bool WaitIdle(std::chrono::nanoseconds timeout) EXCLUDES(mu_);

  [[nodiscard]] std::size_t queued() const EXCLUDES(mu_);
  [[nodiscard]] std::size_t queued(const Servable& servable) const EXCLUDES(mu_);

 private:
  using Entry = RequestQueue::Entry;

  // What a worker does next: answer the dead, run the batch, or (both empty) sleep at most `wait`.
  struct Step {
    std::vector<Entry> dead;
    std::vector<Entry> batch;
    std::chrono::nanoseconds wait{0};
  };

  // What came of one run of a session.
  struct Run {
    MonotonicTime start;
    bool completed = false;                            // The session itself did not fail.
    Result<std::vector<std::vector<Tensor>>> outputs;  // Of each item.
    InferTiming timing;                                // Without the items' own waiting.
  };

  void Work();
  [[nodiscard]] Status Admit(const WorkItem& item, MonotonicTime now) const REQUIRES(mu_);
  // Runs and answers the item on this thread, or leaves it as it is and says no.
  [[nodiscard]] bool RunHere(WorkItem& item, MonotonicTime now) EXCLUDES(mu_);
  [[nodiscard]] bool Idle() const REQUIRES(mu_);
  [[nodiscard]] Step NextStep(MonotonicTime now) REQUIRES(mu_);
  [[nodiscard]] BatchDecision Decide(const Servable& servable, MonotonicTime now, std::vector<QueueKey>& keys) const
      REQUIRES(mu_);
  // Frees the slot of a request whose client has gone. Runs on the cancelling thread, under the token's lock.
  void Bury(const Servable& servable, const QueueKey& key) EXCLUDES(mu_);
  void RunBatch(std::vector<Entry> entries);
  [[nodiscard]] Run Execute(const std::vector<WorkItem>& items) const;
  void RunTogether(std::vector<WorkItem>& items, const std::vector<MonotonicTime>& queued);
  static void AnswerDead(Entry entry);

  // Constant after construction.
  const Clock& clock_;
  const AdmissionPolicy& admission_;
  const DispatcherOptions options_;

  std::atomic<std::uint64_t> next_sequence_{0};

  mutable Mutex mu_;
  CondVar work_or_stop_;
  CondVar idle_;
  RequestQueue queue_ GUARDED_BY(mu_);
  // Cancelled while they waited; a worker answers them, because a callback must not release its own registration.
  std::vector<Entry> graveyard_ GUARDED_BY(mu_);
  int running_ GUARDED_BY(mu_) = 0;       // Workers that run something.
  int running_here_ GUARDED_BY(mu_) = 0;  // Submitting threads that do.
  bool stopping_ GUARDED_BY(mu_) = false;

  std::vector<std::jthread> workers_;  // Last: they use all of the above.
};

}  // namespace tandem
