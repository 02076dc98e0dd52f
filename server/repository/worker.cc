#include "server/repository/worker.h"

#include <utility>

#include "api/base/thread_name.h"

namespace tandem::repository {

Worker::Worker() : thread_([this] { Run(); }) {}

Worker::~Worker() {
  Stop();
}

bool Worker::Post(Task&& task) {
  const MutexLock lock(mu_);
  if (stopped_) return false;
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
  return true;
}

bool Worker::PostFirst(Task&& task) {
  const MutexLock lock(mu_);
  if (stopped_) return false;
  tasks_.push_front(std::move(task));
  changed_.NotifyOne();
  return true;
}

void Worker::Stop() {
  {
    const MutexLock lock(mu_);
    stopped_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Worker::Run() {
  NameThread("repository");
  while (true) {
    Task task;
    {
      const MutexLock lock(mu_);
      while (tasks_.empty() && !stopped_) changed_.Wait(mu_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      task();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the contract of Post.
    }
  }
}

}  // namespace tandem::repository
