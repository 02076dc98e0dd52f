#include "colocation/waiting_work.h"

#include <algorithm>
#include <iterator>

namespace tandem {

std::size_t WaitingWork::BlockOf(const QueueKey& key) const {
  const auto next = std::ranges::upper_bound(blocks_, key, {}, [](const Block& b) { return b.entries.front().key; });
  return next == blocks_.begin() ? 0 : static_cast<std::size_t>(next - blocks_.begin()) - 1;
}

void WaitingWork::Split(std::size_t at) {
  Block upper;
  upper.entries.reserve(kMostInBlock);
  if (blocks_.size() == blocks_.capacity()) blocks_.reserve(2 * blocks_.size());
  // From here on nothing fails.
  std::vector<Entry>& lower = blocks_[at].entries;
  const auto middle = lower.begin() + kMostInBlock / 2;
  std::ranges::copy(middle, lower.end(), std::back_inserter(upper.entries));
  for (const Entry& entry : upper.entries) upper.elements += entry.elements;
  blocks_[at].elements -= upper.elements;
  lower.erase(middle, lower.end());
  blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(upper));
}

void WaitingWork::Add(const QueueKey& key, std::int64_t elements) {
  if (blocks_.empty()) {
    blocks_.push_back({.entries = {{.key = key, .elements = elements}}, .elements = elements});
    return;
  }
  if (const std::size_t at = BlockOf(key); blocks_[at].entries.size() >= kMostInBlock) Split(at);
  Block& block = blocks_[BlockOf(key)];
  block.entries.insert(std::ranges::upper_bound(block.entries, key, {}, &Entry::key),
                       {.key = key, .elements = elements});
  block.elements += elements;
}

void WaitingWork::Remove(const QueueKey& key) {
  if (blocks_.empty()) return;
  const std::size_t at = BlockOf(key);
  Block& block = blocks_[at];
  const auto entry = std::ranges::lower_bound(block.entries, key, {}, &Entry::key);
  if (entry == block.entries.end() || entry->key != key) return;
  block.elements -= entry->elements;
  block.entries.erase(entry);
  if (block.entries.empty()) blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at));
}

WorkAmount WaitingWork::Before(const QueueKey& key) const {
  WorkAmount before;
  if (blocks_.empty()) return before;
  const std::size_t at = BlockOf(key);
  for (std::size_t i = 0; i < at; ++i) {
    before.requests += static_cast<std::int64_t>(blocks_[i].entries.size());
    before.elements += blocks_[i].elements;
  }
  for (const Entry& entry : blocks_[at].entries) {
    if (entry.key >= key) break;
    ++before.requests;
    before.elements += entry.elements;
  }
  return before;
}

}  // namespace tandem
