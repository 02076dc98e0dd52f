#pragma once

#include <atomic>
#include <memory>

#include "server/core/bulk_thread.h"

namespace tandem::rest {

// A thread for calls that take long and of which there may be a few at a time: neither connections nor requests wait
// for it. Owned by the routes; it ends before the core does. Thread-safe.
class SideThread {
 public:
  // At most `most` calls are under way or wait.
  SideThread(const char* name, int most) : most_(most), thread_(name) {}

  // Keeps a place as long as it lives; null when all are taken.
  [[nodiscard]] std::shared_ptr<void> Enter() {
    std::shared_ptr<void> place(places_.get(), [places = places_](void*) { places->fetch_sub(1); });
    return places_->fetch_add(1) < most_ ? place : nullptr;
  }
  [[nodiscard]] BulkThread& thread() { return thread_; }

 private:
  const int most_;
  const std::shared_ptr<std::atomic<int>> places_ = std::make_shared<std::atomic<int>>(0);  // Shared with the places.
  BulkThread thread_;
};

}  // namespace tandem::rest
