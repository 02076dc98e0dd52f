#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "api/base/mutex.h"

namespace tandem::repository {

// One thread that runs tasks in turn. Thread-safe. Stop() before the last owner lets go; never from a task.
class Worker {
 public:
  using Task = std::move_only_function<void()>;

  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs `task` after those posted before, or ahead of all that wait. False, and the task is not taken, once stopped.
  // What a task throws is lost: tasks report for themselves.
  [[nodiscard]] bool Post(Task&& task);
  [[nodiscard]] bool PostFirst(Task&& task);

  // Runs what was posted so far, then ends the thread. May be called again.
  void Stop();

 private:
  void Run();

  Mutex mu_;
  CondVar changed_;
  std::deque<Task> tasks_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
  // Owner's thread only.
  std::thread thread_;
};

}  // namespace tandem::repository
