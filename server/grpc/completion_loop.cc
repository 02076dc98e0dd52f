#include "server/grpc/completion_loop.h"

#include <utility>

#include <grpc/support/time.h>
#include <grpcpp/completion_queue.h>

#include "api/base/thread_name.h"

namespace tandem::grpc_front {

CompletionLoop::CompletionLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue, const Clock& clock,
                               std::chrono::nanoseconds poll_window, std::function<bool()> may_poll)
    : queue_(std::move(queue)), clock_(clock), may_poll_(std::move(may_poll)), budget_(poll_window) {}

CompletionLoop::~CompletionLoop() {
  Stop();
}

void CompletionLoop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void CompletionLoop::Stop() {
  if (std::exchange(stopped_, true)) return;
  queue_->Shutdown();
  // A queue must be emptied before its end, also one that was never served.
  if (!thread_.joinable()) return Run();
  thread_.join();
}

void CompletionLoop::Run() {
  NameThread("grpc");
  while (true) {
    Look look = HandleIfAny();
    if (look == Look::kNothing) look = Poll();
    if (look == Look::kNothing) look = HandleNext(gpr_inf_future(GPR_CLOCK_MONOTONIC));
    if (look == Look::kEnd) return;
  }
}

CompletionLoop::Look CompletionLoop::Poll() {
  const MonotonicTime begun = clock_.Now();
  if (!may_poll_()) return Look::kNothing;
  const MonotonicTime until = budget_.Begin(begun);
  if (until <= begun) return Look::kNothing;
  do {
    if (const Look look = HandleIfAny(); look != Look::kNothing) {
      budget_.Found();
      return look;
    }
  } while (clock_.Now() < until && may_poll_());
  budget_.Missed();
  return Look::kNothing;
}

CompletionLoop::Look CompletionLoop::HandleIfAny() {
  return HandleNext(gpr_time_0(GPR_CLOCK_MONOTONIC));
}

CompletionLoop::Look CompletionLoop::HandleNext(const gpr_timespec& deadline) {
  void* tag = nullptr;
  bool ok = false;
  switch (queue_->AsyncNext(&tag, &ok, deadline)) {
    case grpc::CompletionQueue::SHUTDOWN: return Look::kEnd;
    case grpc::CompletionQueue::TIMEOUT: return Look::kNothing;
    case grpc::CompletionQueue::GOT_EVENT: break;
  }
  static_cast<Operation*>(tag)->Done(ok);
  return Look::kHandled;
}

}  // namespace tandem::grpc_front
