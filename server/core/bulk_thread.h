#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "api/base/mutex.h"

namespace tandem {

// A thread for what takes long between the network and the queue: to unpack, to parse, to pack. So no other request
// waits for it on the thread that serves its connection. Runs what it is given in that order. Owned by the lifecycle,
// used by every front end. Thread-safe.
class BulkThread {
 public:
  using Work = std::move_only_function<void()>;

  BulkThread() : thread_([this] { Run(); }) {}
  // Stop()
  ~BulkThread();
  BulkThread(const BulkThread&) = delete;
  BulkThread& operator=(const BulkThread&) = delete;

  // `work` must not throw. After Stop() it is dropped.
  void Do(Work work) EXCLUDES(mu_);
  // Runs what it was given and ends the thread. By the owner, once.
  void Stop() EXCLUDES(mu_);

 private:
  void Run() EXCLUDES(mu_);

  Mutex mu_;
  CondVar changed_;
  std::deque<Work> work_ GUARDED_BY(mu_);
  bool ending_ GUARDED_BY(mu_) = false;

  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tandem
