#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "api/base/clock.h"
#include "colocation/request_queue.h"
#include "colocation/servable.h"
#include "colocation/work_item.h"

namespace tandem {

// Requests of one model that can share a run, most urgent first.
struct RunGroup {
  const WorkItem* first = nullptr;  // Owned by the queue.
  std::vector<QueueKey> keys;
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 0;
  MonotonicTime oldest = MonotonicTime::max();  // When the longest waiting was queued.
  bool has_deadline = false;                    // Any of them.

  void Add(const QueueKey& key, std::int64_t size, MonotonicTime queued);
};

// Sorts one model's waiting requests by what can share a run. Only a model that may put off a run needs more than the
// group of its most urgent request: while that one waits for company, another may be complete. Not thread-safe; lives
// within one decision.
class RunGroups {
 public:
  explicit RunGroups(const BatchSettings& settings) : settings_(settings) {}

  // In the order of urgency. False: what follows can change no decision.
  [[nodiscard]] bool Add(const QueueKey& key, const RequestQueue::Entry& entry);

  // Most urgent first, none of them empty.
  [[nodiscard]] const std::vector<RunGroup>& groups() const { return groups_; }

 private:
  // The group of the item, perhaps a new one; null when the item must be left for another time.
  RunGroup* GroupOf(const WorkItem& item);

  const BatchSettings& settings_;
  std::vector<RunGroup> groups_;
  std::unordered_map<std::size_t, std::size_t> by_hash_;  // Where in groups_.
};

}  // namespace tandem
