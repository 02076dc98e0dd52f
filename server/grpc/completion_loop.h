#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include <grpc/impl/codegen/gpr_types.h>

#include "api/base/clock.h"
#include "api/base/poll_budget.h"

namespace grpc {
class ServerCompletionQueue;
}

namespace tandem::grpc_front {

// Something that was begun on a loop's queue, with its own address as the tag.
class Operation {
 public:
  // It has come back. On the loop's thread. Where what it does runs out of memory and nobody caught that, the process
  // ends: gRPC itself does the same on that thread, for every byte that it cannot have.
  virtual void Done(bool ok) = 0;

 protected:
  ~Operation() = default;
};

// A completion queue and the thread that serves it, for gRPC's transport as well as for our calls. After the last event
// the thread looks for more for a moment before it sleeps (PollBudget), unless requests are being computed: it would
// take a core from them. Made and stopped by GrpcServer.
class CompletionLoop {
 public:
  // `clock` is borrowed. `may_poll` is asked on the loop's thread, often.
  CompletionLoop(std::unique_ptr<grpc::ServerCompletionQueue> queue, const Clock& clock,
                 std::chrono::nanoseconds poll_window, std::function<bool()> may_poll);
  // Stop()
  ~CompletionLoop();
  CompletionLoop(const CompletionLoop&) = delete;
  CompletionLoop& operator=(const CompletionLoop&) = delete;

  [[nodiscard]] grpc::ServerCompletionQueue& queue() { return *queue_; }

  // Once, when the server that uses the queue has been started.
  void Start();
  // Ends the thread when everything that was begun has come back. The server must have been shut down, and nothing may
  // be begun any more.
  void Stop();

 private:
  void Run();
  enum class Look { kNothing, kHandled, kEnd };
  // Handles the next event, for which it waits until `deadline`. kEnd: there will be none.
  [[nodiscard]] Look HandleNext(const gpr_timespec& deadline);
  // Looks for an event without waiting.
  [[nodiscard]] Look HandleIfAny();
  [[nodiscard]] Look Poll();

  // Constant after construction.
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  const Clock& clock_;
  const std::function<bool()> may_poll_;

  // The loop's thread only.
  PollBudget budget_;

  // The owner's thread only.
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace tandem::grpc_front
