#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "colocation/queue_key.h"

namespace tandem {

// How much of something there is.
struct WorkAmount {
  std::int64_t requests = 0;
  std::int64_t elements = 0;

  friend bool operator==(const WorkAmount&, const WorkAmount&) = default;
};

// Tells how much of what waits for one model stands before a place in the queue, without walking through all of it: in
// order, in blocks that know their sums. Not thread-safe.
class WaitingWork {
 public:
  // Changes nothing when memory runs out. A key stands here once.
  void Add(const QueueKey& key, std::int64_t elements);
  void Remove(const QueueKey& key);

  [[nodiscard]] WorkAmount Before(const QueueKey& key) const;

 private:
  struct Entry {
    QueueKey key;
    std::int64_t elements = 0;
  };
  struct Block {
    std::vector<Entry> entries;  // In order; not empty.
    std::int64_t elements = 0;
  };
  // Halved when it has as many.
  static constexpr std::size_t kMostInBlock = 128;

  // The block that the key belongs into; there must be one.
  [[nodiscard]] std::size_t BlockOf(const QueueKey& key) const;

  void Split(std::size_t at);

  std::vector<Block> blocks_;  // In order.
};

}  // namespace tandem
