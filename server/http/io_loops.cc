#include "server/http/io_loops.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include <sys/eventfd.h>
#include <trantor/net/Channel.h>
#include <trantor/net/EventLoop.h>
#include <trantor/utils/Logger.h>

#include "api/base/thread_name.h"
#include "server/http/stream.h"

namespace tandem::http {
namespace {

std::once_flag transport_log_once;

}  // namespace

void SetTransportLog(std::function<void(std::string_view)> log) {
  std::call_once(transport_log_once, [&] {
    trantor::Logger::setLogLevel(trantor::Logger::kWarn);
    trantor::Logger::setOutputFunction(
        [log = std::move(log)](const char* text, std::uint64_t size) {
          if (log) log(std::string_view(text, size));
        },
        [] {});
  });
}

IoLoop::IoLoop(std::string name, std::chrono::nanoseconds poll_window) : poll_budget_(poll_window) {
  SetTransportLog({});
  thread_ = std::thread([this, name = std::move(name)] { ThreadMain(name); });
  MutexLock lock(mu_);
  while (!running_) started_.Wait(mu_);
}

IoLoop::~IoLoop() {
  Stop();
}

void IoLoop::ThreadMain(const std::string& name) {
  NameThread(name);
  trantor::EventLoop events;
  // Never read, so always readable; without a descriptor for it the loop sleeps as any other.
  const UniqueFd ready(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  trantor::Channel always_ready(&events, ready.get());
  always_ready.setReadCallback([this] { OnTurn(); });
  if (ready) always_ready_ = &always_ready;
  // trantor forgets a quit() that comes before the loop turns, so the start is announced from inside.
  events.queueInLoop([this, &events] {
    MutexLock lock(mu_);
    events_ = &events;
    thread_id_ = std::this_thread::get_id();
    running_ = true;
    started_.NotifyAll();
  });
  events.loop();
  if (polling_) StopPolling();
  std::vector<Task> dropped;
  {
    MutexLock lock(mu_);
    events_ = nullptr;
    dropped.swap(posted_);
  }
  while (wakers_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  // Destroyed here, outside the lock: a dropped task may own an exchange, which posts a last answer.
}

void IoLoop::Post(Task task) {
  trantor::EventLoop* events = nullptr;
  {
    MutexLock lock(mu_);
    // Dropped with the parameter, which the caller destroys after the lock is gone.
    if (events_ == nullptr) return;
    posted_.push_back(std::move(task));
    if (std::exchange(wake_pending_, true)) return;
    events = events_;
    wakers_.fetch_add(1, std::memory_order_relaxed);
  }
  // Outside the lock: the woken thread takes it first thing.
  events->queueInLoop([this] { RunPosted(); });
  wakers_.fetch_sub(1, std::memory_order_release);
}

bool IoLoop::Run(Task task) {
  if (InThread()) {
    task();
    return true;
  }
  // Shared with the posted task: when the loop stops first, the task is dropped and its guard says so.
  struct Latch {
    Mutex mu;
    CondVar changed;
    bool done GUARDED_BY(mu) = false;
    bool ran GUARDED_BY(mu) = false;
  };
  auto latch = std::make_shared<Latch>();
  struct Guard {
    std::shared_ptr<Latch> latch;
    bool ran = false;
    explicit Guard(std::shared_ptr<Latch> l) : latch(std::move(l)) {}
    Guard(Guard&&) = default;
    ~Guard() {
      if (!latch) return;
      MutexLock lock(latch->mu);
      latch->done = true;
      latch->ran = ran;
      latch->changed.NotifyAll();
    }
  };
  Post([guard = Guard(latch), task = std::move(task)]() mutable {
    task();
    guard.ran = true;
  });
  MutexLock lock(latch->mu);
  while (!latch->done) latch->changed.Wait(latch->mu);
  return latch->ran;
}

void IoLoop::RunPosted() {
  {
    MutexLock lock(mu_);
    wake_pending_ = false;
    batch_.swap(posted_);
  }
  for (Task& task : batch_) {
    try {
      task();
    } catch (const std::exception& e) {
      LOG_ERROR << "a task on an I/O loop failed: " << e.what();
    }
    task = nullptr;
  }
  batch_.clear();
}

void IoLoop::RequestBegins() {
  ++requests_;
}

void IoLoop::RequestEnds() {
  if (--requests_ > 0 || always_ready_ == nullptr) return;
  if (polling_) poll_budget_.Found();
  const MonotonicTime now = RealClock::Instance().Now();
  poll_until_ = poll_budget_.Begin(now);
  if (polling_ || poll_until_ <= now) return;
  polling_ = true;
  always_ready_->enableReading();
}

void IoLoop::OnTurn() {
  if (!polling_) return;
  if (requests_ > 0) {
    poll_budget_.Found();
    StopPolling();
  } else if (RealClock::Instance().Now() >= poll_until_) {
    poll_budget_.Missed();
    StopPolling();
  }
}

void IoLoop::StopPolling() {
  polling_ = false;
  always_ready_->disableAll();
}

void IoLoop::Stop() {
  {
    MutexLock lock(mu_);
    if (events_ != nullptr) events_->quit();
  }
  if (thread_.joinable()) thread_.join();
}

IoLoops::IoLoops(std::size_t count, std::chrono::nanoseconds poll_window, std::string_view name) {
  loops_.reserve(std::max<std::size_t>(count, 1));
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
    loops_.push_back(std::make_shared<IoLoop>(std::string(name) + "-" + std::to_string(i), poll_window));
  }
}

IoLoops::~IoLoops() {
  for (const auto& loop : loops_) loop->Stop();
}

}  // namespace tandem::http
