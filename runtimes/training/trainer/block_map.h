#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tandem::training {

// Which parts of a range that grows at its end are taken, as offsets and sizes; knows nothing of the memory behind
// them. Takes the smallest gap that fits, and joins gaps that touch: with blocks of the same sizes in the same order
// again and again, as steps of training have them, the range soon grows no more. Not thread-safe.
class BlockMap {
 public:
  // Where a block of that size, which is not 0, is from now on. Changes nothing when it throws std::bad_alloc, but that
  // there may be a gap more at the end.
  [[nodiscard]] std::size_t Take(std::size_t size);
  // `offset` is what Take() gave; the size that it was given for. Allocates nothing, so that it cannot fail.
  std::size_t GiveBack(std::size_t offset);
  // Of the farthest block there ever was.
  [[nodiscard]] std::size_t end() const { return end_; }
  // Offset and size of what is not taken, one after the other.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> FreeParts() const;

 private:
  using Gaps = std::set<std::pair<std::size_t, std::size_t>>;  // Size and offset.
  struct Block {
    std::size_t size = 0;
    Gaps::node_type entry;  // What it will need among the gaps; none while it is one.
    [[nodiscard]] bool is_gap() const { return entry.empty(); }
  };
  using Blocks = std::map<std::size_t, Block>;  // By offset.

  Gaps::iterator AddGap(std::size_t offset, std::size_t size);
  // Makes a gap of that size at the end.
  Gaps::iterator Lengthen(std::size_t size);

  Blocks blocks_;  // Taken or gaps, one after the other, to the end.
  Gaps gaps_;
  std::size_t end_ = 0;
};

}  // namespace tandem::training
