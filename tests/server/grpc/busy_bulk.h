#pragma once

#include <chrono>
#include <future>
#include <thread>

#include "server/core/bulk_thread.h"

namespace tandem::testing {

// Keeps the bulk thread busy until its end, so that large messages wait to be parsed.
class BusyBulk {
 public:
  explicit BusyBulk(BulkThread& bulk) {
    bulk.Do([end = end_.get_future().share()] { end.wait(); });
  }
  ~BusyBulk() { end_.set_value(); }
  BusyBulk(const BusyBulk&) = delete;
  BusyBulk& operator=(const BusyBulk&) = delete;

 private:
  std::promise<void> end_;
};

// For the other side to have come to where nothing shows.
inline void Pause(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

}  // namespace tandem::testing
