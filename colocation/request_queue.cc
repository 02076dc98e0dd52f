#include "colocation/request_queue.h"

#include <algorithm>
#include <utility>

namespace tandem {

void RequestQueue::Push(const QueueKey& key, Entry entry) {
  queues_[entry.item.servable.get()].emplace(key, std::move(entry));
  ++size_;
}

std::optional<RequestQueue::Entry> RequestQueue::Take(const Servable& servable, const QueueKey& key) {
  const auto queue = queues_.find(&servable);
  if (queue == queues_.end()) return std::nullopt;
  auto node = queue->second.extract(key);
  if (node.empty()) return std::nullopt;
  if (queue->second.empty()) queues_.erase(queue);
  --size_;
  return std::move(node.mapped());
}

std::vector<const Servable*> RequestQueue::ByUrgency() const {
  std::vector<const Servable*> servables;
  servables.reserve(queues_.size());
  for (const auto& [servable, queue] : queues_) servables.push_back(servable);
  std::ranges::sort(servables, {}, [this](const Servable* s) { return queues_.at(s).begin()->first; });
  return servables;
}

const RequestQueue::ModelQueue& RequestQueue::Waiting(const Servable& servable) const {
  static const ModelQueue empty;
  const auto queue = queues_.find(&servable);
  return queue == queues_.end() ? empty : queue->second;
}

std::vector<RequestQueue::Entry> RequestQueue::TakeAll() {
  std::vector<Entry> all;
  for (auto& [servable, queue] : queues_) {
    for (auto& [key, entry] : queue) all.push_back(std::move(entry));
  }
  queues_.clear();
  size_ = 0;
  return all;
}

std::size_t RequestQueue::size(const Servable& servable) const {
  return Waiting(servable).size();
}

}  // namespace tandem
