#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "colocation/fair_share.h"
#include "colocation/queue_key.h"
#include "colocation/waiting_work.h"
#include "colocation/work_item.h"

namespace tandem {

// Requests waiting for one device, grouped by servable. Not thread-safe: the dispatcher guards it.
class RequestQueue {
 public:
  struct Entry {
    WorkItem item;
    MonotonicTime queued;
    // Declared last: released before the token that it is registered with.
    CancelToken::Registration on_cancel;
  };
  using ModelQueue = std::map<QueueKey, Entry>;

  // Room for so many more at the end, before they are taken out of the queue: none must be lost for want of memory.
  // Grows as push_back() does, so that one at a time is no more work.
  static void MakeRoom(std::vector<Entry>& entries, std::size_t more);

  // Throws std::bad_alloc, and then neither the queue nor the entry has changed.
  void Push(const QueueKey& key, Entry&& entry);
  [[nodiscard]] std::optional<Entry> Take(const Servable& servable, const QueueKey& key);

  // Moves to the end of `expired` whatever should have been done before `now`, wherever it stands.
  void TakeExpired(MonotonicTime now, std::vector<Entry>& expired);
  // No deadline of what waits is earlier; max when none has one.
  [[nodiscard]] MonotonicTime EarliestDeadline() const;

  // Servables that have something waiting, most urgent head first.
  [[nodiscard]] std::vector<const Servable*> ByUrgency() const;
  // Of the most urgent request; nullopt when none waits.
  [[nodiscard]] std::optional<std::uint64_t> MostUrgentLevel() const;
  // The flows of that level, in place of what `flows` held.
  void FlowsOf(std::uint64_t level, std::vector<Flow>& flows) const;
  [[nodiscard]] bool Waits(const FlowId& flow) const;
  // What of a flow stands at the key or behind it.
  [[nodiscard]] WorkAmount Behind(const FlowId& flow, const QueueKey& key) const;
  [[nodiscard]] const ModelQueue& Waiting(const Servable& servable) const;

  // What of each servable stands before the key, as far as anything does.
  [[nodiscard]] std::vector<std::pair<const Servable*, WorkAmount>> Before(const QueueKey& key) const;

  [[nodiscard]] std::vector<Entry> TakeAll();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t size(const Servable& servable) const;

 private:
  // Where to find a request once its deadline has passed. The servable is a key here, never followed: the request may
  // have been taken long ago.
  struct Due {
    QueueKey key;
    const Servable* servable;
  };
  static bool Later(const Due& a, const Due& b) { return a.key.deadline > b.key.deadline; }
  std::optional<Entry> Extract(const Servable* servable, const QueueKey& key);
  // Keeps what was taken before its deadline from piling up.
  void ForgetTaken();

  std::size_t size_ = 0;
  std::vector<Due> due_;  // A heap, the earliest deadline first: every waiting request with one, and some taken since.
  struct Waitings {
    ModelQueue entries;
    WaitingWork work;  // The same, as amounts.
  };
  std::map<const Servable*, Waitings> queues_;  // No empty queues. The items own the servables.
};

}  // namespace tandem
