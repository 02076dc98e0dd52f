#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/poll_budget.h"

namespace trantor {
class Channel;
class EventLoop;
}  // namespace trantor

namespace tandem::http {

// One thread that waits for sockets and runs what is posted to it (trantor's event loop). Shared by the servers that
// run on it and by every exchange, which may outlive them: what is posted after Stop() is dropped.
//
// After an answer it looks for the next request without sleeping, for a short while and only while none is being worked
// on: then the cores belong to the work.
class IoLoop {
 public:
  using Task = std::move_only_function<void()>;

  // Starts the thread and returns when the loop runs. `poll_window` is how long it looks before it sleeps; 0: never.
  IoLoop(std::string name, std::chrono::nanoseconds poll_window);
  ~IoLoop();
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  // Runs `task` on the loop's thread, after what was posted before it. Thread-safe. What a task throws is dropped.
  void Post(Task task);
  // As Post, and returns when the task has run; at once when called on the loop's thread. False: the loop has stopped.
  bool Run(Task task);
  [[nodiscard]] bool InThread() const { return std::this_thread::get_id() == thread_id_; }

  // The loop itself, for who watches sockets on it. Loop's thread only.
  [[nodiscard]] trantor::EventLoop& events() NO_THREAD_SAFETY_ANALYSIS { return *events_; }

  // A request has come, or is done with. Loop's thread only.
  void RequestBegins();
  void RequestEnds();

  // Ends the thread; what is still posted is dropped. Not from the loop's own thread.
  void Stop();

 private:
  void ThreadMain(const std::string& name);
  void RunPosted();
  // Once per turn while the loop does not sleep.
  void OnTurn();
  void StopPolling();

  Mutex mu_;
  CondVar started_;
  trantor::EventLoop* events_ GUARDED_BY(mu_) = nullptr;  // Lives on the thread's stack; null before and after.
  std::vector<Task> posted_ GUARDED_BY(mu_);
  bool wake_pending_ GUARDED_BY(mu_) = false;
  bool running_ GUARDED_BY(mu_) = false;

  // Threads that are about to wake the loop, which must not go before they have.
  std::atomic<int> wakers_{0};

  // Loop's thread only.
  std::vector<Task> batch_;
  int requests_ = 0;  // Being worked on.
  PollBudget poll_budget_;
  MonotonicTime poll_until_;
  bool polling_ = false;
  trantor::Channel* always_ready_ = nullptr;  // While the poller knows it, the loop does not sleep.

  // Constant after construction.
  std::thread::id thread_id_;

  std::thread thread_;  // Joined by Stop().
};

// A fixed set of loops. Several servers (the API port, the metrics port) may share one.
class IoLoops {
 public:
  // `count` is at least 1.
  explicit IoLoops(std::size_t count, std::chrono::nanoseconds poll_window = {}, std::string_view name = "http");

  [[nodiscard]] std::size_t size() const { return loops_.size(); }
  // Shared because an exchange may outlive the set.
  [[nodiscard]] const std::shared_ptr<IoLoop>& at(std::size_t i) const { return loops_[i]; }

  ~IoLoops();

 private:
  std::vector<std::shared_ptr<IoLoop>> loops_;
};

// Where the network library's own warnings go; nowhere until this is called. Call before the first loop starts.
void SetTransportLog(std::function<void(std::string_view)> log);

}  // namespace tandem::http
