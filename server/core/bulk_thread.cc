#include "server/core/bulk_thread.h"

#include <utility>

#include "api/base/thread_name.h"

namespace tandem {

BulkThread::~BulkThread() {
  Stop();
}

void BulkThread::Stop() {
  {
    MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void BulkThread::Do(Work work) {
  MutexLock lock(mu_);
  if (ending_) return;
  work_.push_back(std::move(work));
  changed_.NotifyAll();
}

void BulkThread::Run(const char* name) {
  NameThread(name);
  while (true) {
    Work next;
    {
      MutexLock lock(mu_);
      while (work_.empty() && !ending_) changed_.Wait(mu_);
      if (work_.empty()) return;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
  }
}

}  // namespace tandem
