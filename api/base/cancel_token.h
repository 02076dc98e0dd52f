#pragma once

#include <atomic>
#include <functional>
#include <list>

#include "api/base/mutex.h"

namespace tandem {

// Says that nobody waits for a piece of work any more. Set once, by the front end whose client has gone; read before
// compute, and heard during it. Thread-safe. Callbacks run on the cancelling thread, under the token's lock: they must
// be short and must not touch the token.
class CancelToken {
 public:
  // Keeps a callback registered. When its destructor returns, the callback is not running and will not run.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

   private:
    friend class CancelToken;
    Registration(CancelToken* token, std::list<std::function<void()>>::iterator entry) : token_(token), entry_(entry) {}
    void Release();

    CancelToken* token_ = nullptr;  // Borrowed; must outlive the registration.
    std::list<std::function<void()>>::iterator entry_;
  };

  void Cancel();
  [[nodiscard]] bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // Runs `callback` once on cancellation; at once, here, when already cancelled.
  [[nodiscard]] Registration OnCancel(std::function<void()> callback);

 private:
  std::atomic<bool> cancelled_{false};
  Mutex mu_;
  std::list<std::function<void()>> callbacks_ GUARDED_BY(mu_);
};

}  // namespace tandem
