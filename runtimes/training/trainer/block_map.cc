#include "runtimes/training/trainer/block_map.h"

#include <iterator>
#include <new>

namespace tandem::training {

BlockMap::Gaps::iterator BlockMap::AddGap(std::size_t offset, std::size_t size) {
  const auto gap = gaps_.emplace(size, offset).first;
  try {
    blocks_[offset].size = size;
  } catch (const std::bad_alloc&) {
    gaps_.erase(gap);
    throw;
  }
  return gap;
}

BlockMap::Gaps::iterator BlockMap::Lengthen(std::size_t size) {
  if (blocks_.empty() || !std::prev(blocks_.end())->second.is_gap()) {
    const auto gap = AddGap(end_, size);
    end_ += size;
    return gap;
  }
  auto& [offset, last] = *std::prev(blocks_.end());
  auto entry = gaps_.extract({last.size, offset});
  entry.value().first = size;
  last.size = size;
  end_ = offset + size;
  return gaps_.insert(std::move(entry)).position;
}

std::size_t BlockMap::Take(std::size_t size) {
  auto gap = gaps_.lower_bound({size, 0});
  if (gap == gaps_.end()) gap = Lengthen(size);
  const auto [gap_size, offset] = *gap;
  if (gap_size > size) AddGap(offset + size, gap_size - size);
  Block& block = blocks_.at(offset);
  block.size = size;
  block.entry = gaps_.extract(gap);
  return offset;
}

std::size_t BlockMap::GiveBack(std::size_t offset) {
  auto block = blocks_.find(offset);
  const std::size_t size = block->second.size;
  auto entry = std::move(block->second.entry);
  if (const auto next = std::next(block); next != blocks_.end() && next->second.is_gap()) {
    gaps_.erase({next->second.size, next->first});
    block->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (block != blocks_.begin() && std::prev(block)->second.is_gap()) {
    const auto before = std::prev(block);
    gaps_.erase({before->second.size, before->first});
    before->second.size += block->second.size;
    blocks_.erase(block);
    block = before;
  }
  entry.value() = {block->second.size, block->first};
  gaps_.insert(std::move(entry));
  return size;
}

std::vector<std::pair<std::size_t, std::size_t>> BlockMap::FreeParts() const {
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (const auto& [offset, block] : blocks_) {
    if (block.is_gap()) parts.emplace_back(offset, block.size);
  }
  return parts;
}

}  // namespace tandem::training
