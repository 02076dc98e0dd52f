#include "colocation/request_queue.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kDueSlack = 64;
constexpr std::uint64_t kLastSequence = std::numeric_limits<std::uint64_t>::max();

// Where the requests of a level begin, and those of them that have no deadline.
QueueKey FirstOf(std::uint64_t level) {
  return {.priority = level, .deadline = MonotonicTime::min(), .sequence = 0};
}
QueueKey FirstPatient(std::uint64_t level) {
  return {.priority = level, .deadline = MonotonicTime::max(), .sequence = 0};
}

bool IsPatient(const QueueKey& key) {
  return key.deadline == MonotonicTime::max();
}

// The first of a flow's requests; null when none waits.
const QueueKey* FirstIn(const RequestQueue::ModelQueue& entries, std::uint64_t level, bool patient) {
  const auto first = entries.lower_bound(patient ? FirstPatient(level) : FirstOf(level));
  if (first == entries.end() || first->first.priority != level || IsPatient(first->first) != patient) return nullptr;
  return &first->first;
}

}  // namespace

void RequestQueue::Push(const QueueKey& key, Entry&& entry) {
  const Servable* const servable = entry.item.servable.get();
  const bool due = key.deadline != MonotonicTime::max();
  if (due && due_.size() > 2 * size_ + kDueSlack) ForgetTaken();
  if (due && due_.size() == due_.capacity()) due_.reserve(2 * due_.size() + kDueSlack);
  ModelQueue place;
  place.try_emplace(key);
  const auto [queue, fresh] = queues_.try_emplace(servable);
  try {
    queue->second.work.Add(key, entry.item.batch);
  } catch (const std::bad_alloc&) {
    if (fresh) queues_.erase(queue);
    throw;
  }
  // From here on nothing fails.
  place.begin()->second = std::move(entry);
  queue->second.entries.merge(place);
  ++size_;
  if (!due) return;
  due_.push_back({.key = key, .servable = servable});
  std::ranges::push_heap(due_, Later);
}

void RequestQueue::MakeRoom(std::vector<Entry>& entries, std::size_t more) {
  const std::size_t needed = entries.size() + more;
  if (needed > entries.capacity()) entries.reserve(std::max(needed, 2 * entries.size() + 8));
}

void RequestQueue::ForgetTaken() {
  std::erase_if(due_, [this](const Due& due) {
    const auto queue = queues_.find(due.servable);
    return queue == queues_.end() || !queue->second.entries.contains(due.key);
  });
  std::ranges::make_heap(due_, Later);
}

void RequestQueue::TakeExpired(MonotonicTime now, std::vector<Entry>& expired) {
  while (!due_.empty() && due_.front().key.deadline < now) {
    MakeRoom(expired, 1);
    std::ranges::pop_heap(due_, Later);
    const Due due = due_.back();
    due_.pop_back();
    if (auto entry = Extract(due.servable, due.key)) expired.push_back(std::move(*entry));
  }
}

MonotonicTime RequestQueue::EarliestDeadline() const {
  return size_ == 0 || due_.empty() ? MonotonicTime::max() : due_.front().key.deadline;
}

std::optional<RequestQueue::Entry> RequestQueue::Take(const Servable& servable, const QueueKey& key) {
  return Extract(&servable, key);
}

std::optional<RequestQueue::Entry> RequestQueue::Extract(const Servable* servable, const QueueKey& key) {
  const auto queue = queues_.find(servable);
  if (queue == queues_.end()) return std::nullopt;
  const auto entry = queue->second.entries.find(key);
  if (entry == queue->second.entries.end()) return std::nullopt;
  auto node = queue->second.entries.extract(entry);
  queue->second.work.Remove(key);
  if (queue->second.entries.empty()) queues_.erase(queue);
  --size_;
  return std::move(node.mapped());
}

std::vector<const Servable*> RequestQueue::ByUrgency() const {
  std::vector<const Servable*> servables;
  servables.reserve(queues_.size());
  for (const auto& [servable, queue] : queues_) servables.push_back(servable);
  std::ranges::sort(servables, {}, [this](const Servable* s) { return queues_.at(s).entries.begin()->first; });
  return servables;
}

std::optional<std::uint64_t> RequestQueue::MostUrgentLevel() const {
  std::optional<std::uint64_t> level;
  for (const auto& [servable, queue] : queues_) {
    const std::uint64_t own = queue.entries.begin()->first.priority;
    level = std::min(level.value_or(own), own);
  }
  return level;
}

void RequestQueue::FlowsOf(std::uint64_t level, std::vector<Flow>& flows) const {
  flows.clear();
  for (const auto& [servable, queue] : queues_) {
    const QueueKey* const urgent = FirstIn(queue.entries, level, false);
    const QueueKey* const patient = FirstIn(queue.entries, level, true);
    const double weight = servable->batching().weight / (urgent != nullptr && patient != nullptr ? 2 : 1);
    for (const QueueKey* first : {urgent, patient}) {
      if (first != nullptr) flows.push_back({.id = FlowOf(*servable, *first), .weight = weight, .first = *first});
    }
  }
}

bool RequestQueue::Waits(const FlowId& flow) const {
  const auto queue = queues_.find(flow.servable);
  return queue != queues_.end() && FirstIn(queue->second.entries, flow.level, flow.patient) != nullptr;
}

WorkAmount RequestQueue::Behind(const FlowId& flow, const QueueKey& key) const {
  const auto queue = queues_.find(flow.servable);
  if (queue == queues_.end()) return {};
  const WaitingWork& work = queue->second.work;
  const QueueKey patient = FirstPatient(flow.level);
  const QueueKey end = flow.patient ? QueueKey{flow.level, MonotonicTime::max(), kLastSequence} : patient;
  const WorkAmount all = work.Before(end);
  const WorkAmount before = work.Before(std::max(key, flow.patient ? patient : FirstOf(flow.level)));
  if (before.requests >= all.requests) return {};
  return {.requests = all.requests - before.requests, .elements = all.elements - before.elements};
}

const RequestQueue::ModelQueue& RequestQueue::Waiting(const Servable& servable) const {
  static const ModelQueue empty;
  const auto queue = queues_.find(&servable);
  return queue == queues_.end() ? empty : queue->second.entries;
}

std::vector<std::pair<const Servable*, WorkAmount>> RequestQueue::Before(const QueueKey& key) const {
  std::vector<std::pair<const Servable*, WorkAmount>> before;
  for (const auto& [servable, queue] : queues_) {
    if (const WorkAmount work = queue.work.Before(key); work.requests > 0) before.emplace_back(servable, work);
  }
  return before;
}

std::vector<RequestQueue::Entry> RequestQueue::TakeAll() {
  std::vector<Entry> all;
  for (auto& [servable, queue] : queues_) {
    for (auto& [key, entry] : queue.entries) all.push_back(std::move(entry));
  }
  queues_.clear();
  due_.clear();
  size_ = 0;
  return all;
}

std::size_t RequestQueue::size(const Servable& servable) const {
  return Waiting(servable).size();
}

}  // namespace tandem
