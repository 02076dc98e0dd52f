#pragma once

#include <chrono>
#include <thread>

#include "api/base/cancel_token.h"
#include "api/base/mutex.h"

namespace tandem::repository {

// Cancels a token unless it is destroyed first: a limit on the time of one piece of work. Owned by whoever does the
// work; `token` is borrowed and must outlive it.
class CancelAfter {
 public:
  CancelAfter(CancelToken& token, std::chrono::nanoseconds time);
  ~CancelAfter();
  CancelAfter(const CancelAfter&) = delete;
  CancelAfter& operator=(const CancelAfter&) = delete;

  // The time has passed.
  [[nodiscard]] bool expired() const;

 private:
  void Run(std::chrono::nanoseconds time);

  CancelToken& token_;
  mutable Mutex mu_;
  CondVar done_changed_;
  bool done_ GUARDED_BY(mu_) = false;
  bool expired_ GUARDED_BY(mu_) = false;
  std::thread thread_;  // Constructor and destructor only.
};

}  // namespace tandem::repository
