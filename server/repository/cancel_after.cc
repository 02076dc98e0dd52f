#include "server/repository/cancel_after.h"

#include "api/base/thread_name.h"

namespace tandem::repository {

CancelAfter::CancelAfter(CancelToken& token, std::chrono::nanoseconds time)
    : token_(token), thread_([this, time] { Run(time); }) {}

CancelAfter::~CancelAfter() {
  {
    const MutexLock lock(mu_);
    done_ = true;
    done_changed_.NotifyOne();
  }
  thread_.join();
}

bool CancelAfter::expired() const {
  const MutexLock lock(mu_);
  return expired_;
}

void CancelAfter::Run(std::chrono::nanoseconds time) {
  NameThread("time-limit");
  {
    const MutexLock lock(mu_);
    // A notification is the end; a spurious wake-up begins the time anew, which only makes the limit longer.
    while (!done_ && done_changed_.WaitFor(mu_, time)) {
    }
    if (done_) return;
    expired_ = true;
  }
  token_.Cancel();
}

}  // namespace tandem::repository
