#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "api/base/mutex.h"

namespace tandem::grpc_front {

// A thread for messages that take long to unpack and to parse, so that no other call waits for them on its loop. Runs
// what it is given in that order. Thread-safe.
class BulkThread {
 public:
  using Work = std::move_only_function<void()>;

  BulkThread() : thread_([this] { Run(); }) {}
  // Runs what it was given first.
  ~BulkThread();
  BulkThread(const BulkThread&) = delete;
  BulkThread& operator=(const BulkThread&) = delete;

  void Do(Work work) EXCLUDES(mu_);

 private:
  void Run() EXCLUDES(mu_);

  Mutex mu_;
  CondVar changed_;
  std::deque<Work> work_ GUARDED_BY(mu_);
  bool ending_ GUARDED_BY(mu_) = false;

  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tandem::grpc_front
