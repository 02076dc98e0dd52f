#include "colocation/run_groups.h"

#include <algorithm>

#include "colocation/batch_assembly.h"

namespace tandem {

void RunGroup::Add(const QueueKey& key, std::int64_t size, MonotonicTime queued) {
  keys.push_back(key);
  sizes.push_back(size);
  elements += size;
  oldest = std::min(oldest, queued);
  has_deadline |= key.deadline != MonotonicTime::max();
}

bool RunGroups::Add(const QueueKey& key, const RequestQueue::Entry& entry) {
  if (RunGroup* group = GroupOf(entry.item); group != nullptr) group->Add(key, entry.item.batch, entry.queued);
  return settings_.dynamic && groups_.front().elements < settings_.max_batch_size;
}

RunGroup* RunGroups::GroupOf(const WorkItem& item) {
  if (groups_.empty()) return &groups_.emplace_back(RunGroup{.first = &item});
  if (CanShareRun(*groups_.front().first, item)) return &groups_.front();
  if (settings_.max_queue_delay.count() == 0) return nullptr;
  const auto [at, fresh] = by_hash_.try_emplace(ShareHash(item), groups_.size());
  if (fresh) return &groups_.emplace_back(RunGroup{.first = &item});
  RunGroup& group = groups_[at->second];
  return CanShareRun(*group.first, item) ? &group : nullptr;
}

}  // namespace tandem
