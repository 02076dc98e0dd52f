#include "server/grpc/bulk_thread.h"

#include <utility>

namespace tandem::grpc_front {

BulkThread::~BulkThread() {
  {
    MutexLock lock(mu_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void BulkThread::Do(Work work) {
  MutexLock lock(mu_);
  work_.push_back(std::move(work));
  changed_.NotifyAll();
}

void BulkThread::Run() {
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

}  // namespace tandem::grpc_front
