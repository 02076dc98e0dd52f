#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "api/base/result.h"
#include "colocation/shared_pages.h"

namespace tandem {

// What a server shows all of its trainers at once: how many of the machine's threads its runs have just now. An
// operator of training that is as wide as the machine waits at its end for a thread that has no core; a trainer that
// sees the sign uses fewer until the runs are over. A hint, and never an order: it costs the request path one store,
// wakes nobody, and trainers cannot write it. Thread-safe.
class ServingSign {
 public:
  // The server's. kInternal when it cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<ServingSign>> Create();
  // A trainer's, behind an inherited descriptor, which is taken over. kInvalidArgument when that is none.
  [[nodiscard]] static Result<std::unique_ptr<ServingSign>> Attach(int fd);

  [[nodiscard]] int fd() const { return pages_->fd(); }

  // Server; more than there are stands for all.
  void Show(int threads) { word().store(static_cast<std::uint32_t>(threads), std::memory_order_relaxed); }
  // Never negative.
  [[nodiscard]] int shown() const { return static_cast<int>(word().load(std::memory_order_relaxed) & 0xffffU); }

 private:
  explicit ServingSign(std::unique_ptr<SharedPages> pages) : pages_(std::move(pages)) {}
  [[nodiscard]] std::atomic<std::uint32_t>& word() const {
    return *static_cast<std::atomic<std::uint32_t>*>(pages_->data());
  }

  const std::unique_ptr<SharedPages> pages_;
};

}  // namespace tandem
