#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "api/base/mutex.h"

namespace tandem {

// A thread for what takes long, in the order it is given, so that nobody waits for it who serves connections. The
// lifecycle has one between the network and the queue, to unpack, to parse and to pack. Thread-safe.
class BulkThread {
 public:
  using Work = std::move_only_function<void()>;

  // `name` as `top -H` shows it.
  explicit BulkThread(const char* name = "bulk") : thread_([this, name] { Run(name); }) {}
  // Stop()
  ~BulkThread();
  BulkThread(const BulkThread&) = delete;
  BulkThread& operator=(const BulkThread&) = delete;

  // `work` must not throw. After Stop() it is dropped.
  void Do(Work work) EXCLUDES(mu_);
  // Runs what it was given and ends the thread. By the owner, once.
  void Stop() EXCLUDES(mu_);

 private:
  void Run(const char* name) EXCLUDES(mu_);

  Mutex mu_;
  CondVar changed_;
  std::deque<Work> work_ GUARDED_BY(mu_);
  bool ending_ GUARDED_BY(mu_) = false;

  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tandem
