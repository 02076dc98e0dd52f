#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "runtimes/training/trainer/block_map.h"

namespace tandem::training {

// The pages of a lane as one trainer sees them: a range of addresses behind which lies memory that the trainers of
// other jobs have in their turns. Tensors that live within an iteration have their bytes here. One that is still there
// at a boundary is in the way of nobody: its pages become this process's own, at the same addresses, until it is given
// back (Settle). Touching what is beyond the length of the lane is a fault of this process alone (SIGBUS), as the pages
// are a file that ends there. Thread-safe.
class TensorLane {
 public:
  // Blocks are whole pages, so that each can become private by itself.
  static constexpr std::size_t kPage = 4096;

  // Of the descriptor, which is borrowed, no more than `reach` bytes are ever used. kInternal: there are no addresses.
  [[nodiscard]] static Result<std::unique_ptr<TensorLane>> Map(int fd, std::size_t reach);
  ~TensorLane();
  TensorLane(const TensorLane&) = delete;
  TensorLane& operator=(const TensorLane&) = delete;

  // So long is the lane from now on; at a boundary when it is shorter than before.
  void SetLength(std::size_t bytes) EXCLUDES(mu_);

  // Null when the lane is too short: needed() says for what.
  [[nodiscard]] void* Take(std::size_t size) EXCLUDES(mu_);
  // The size that it was taken for, rounded up to pages. `data` is what Take() gave.
  std::size_t GiveBack(void* data) EXCLUDES(mu_);
  [[nodiscard]] bool Owns(const void* data) const { return data >= range_ && data < range_ + reach_; }

  // So long the lane would have to be for what was asked for last and did not fit.
  [[nodiscard]] std::size_t needed() const EXCLUDES(mu_);

  // A boundary: what is still there becomes this process's own. Its bytes; 0 as a rule. kTooLarge: there is no memory
  // for it; then the lane must not be left.
  [[nodiscard]] Result<std::size_t> Settle() EXCLUDES(mu_);

 private:
  TensorLane(int fd, std::byte* range, std::size_t reach) : fd_(fd), reach_(reach), range_(range) {}
  // Has the lane's own pages behind these addresses.
  [[nodiscard]] bool MapPages(std::size_t offset, std::size_t size) const;
  // Has a private copy of what lies there behind them.
  [[nodiscard]] bool MakePrivate(std::size_t offset, std::size_t size) const;

  struct Block {
    std::size_t size = 0;
    bool own = false;  // Private to this process.
  };

  // Constant after construction.
  const int fd_;
  const std::size_t reach_;
  std::byte* const range_;

  mutable Mutex mu_;
  BlockMap places_ GUARDED_BY(mu_);
  std::map<std::size_t, Block> blocks_ GUARDED_BY(mu_);  // Taken, by offset.
  std::size_t length_ GUARDED_BY(mu_) = 0;
  std::size_t needed_ GUARDED_BY(mu_) = 0;
};

}  // namespace tandem::training
