#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/result.h"
#include "server/grpc/call.h"
#include "server/grpc/due_list.h"
#include "server/grpc/front_end_parts.h"

namespace grpc {
class AsyncGenericService;
}

namespace tandem::grpc_front {

class CompletionLoop;

// All calls of the server, of whatever method: the one generic service, from which every call is taken and given to the
// handler that its method has. Owned by GrpcServer; outlives every call. Thread-safe.
//
// A call takes one of a limited number of places until its end, and strangers may begin calls: so those that need no
// token have places of their own, and a call whose first message does not come, or whose client does not take what it
// is sent, is given up.
class GenericCalls {
 public:
  // `parts` is borrowed.
  GenericCalls(FrontEndParts& parts, Routes routes);
  ~GenericCalls();
  GenericCalls(const GenericCalls&) = delete;
  GenericCalls& operator=(const GenericCalls&) = delete;

  // To be registered with the server.
  [[nodiscard]] grpc::AsyncGenericService& service() { return *service_; }

  // Takes calls on `loop`, which is borrowed, from now on until the server is shut down.
  void TakeCallsOn(CompletionLoop& loop);
  // Gives up the calls whose first message has not come, and from now on all that begin.
  void Drain() EXCLUDES(mu_);
  // Returns when the last call has ended; the server must have been shut down. The loops may be stopped then.
  void WaitUntilNone() EXCLUDES(mu_);

 private:
  class TakenCall;
  class Tick;

  // Whose places a call takes beside one of all.
  enum class Share : std::uint8_t { kNone, kOpen, kOpenLasting };

  [[nodiscard]] Result<std::shared_ptr<CallHandler>> MakeHandler(TakenCall& call) EXCLUDES(mu_);
  [[nodiscard]] Status Admit(const Call& call) const;
  void Enter() EXCLUDES(mu_);
  void Leave(Share share) EXCLUDES(mu_);
  // Of a call that has entered.
  [[nodiscard]] Status CheckRoom() EXCLUDES(mu_);
  [[nodiscard]] Status TakeFrom(Share share) EXCLUDES(mu_);

  // From the call's beginning until its first message or its end, on its loop's thread.
  void AwaitMessage(TakenCall& call) EXCLUDES(mu_);
  void Heard(TakenCall& call) EXCLUDES(mu_);
  // From a write or the end, on any thread, until it has come back on the loop's.
  void AwaitSent(TakenCall& call) EXCLUDES(mu_);
  void Sent(TakenCall& call) EXCLUDES(mu_);
  // Takes those off the list that are due then; they are held until they are given up.
  [[nodiscard]] std::vector<TakenCall*> TakeHeld(DueList<TakenCall>& list, MonotonicTime until) REQUIRES(mu_);
  void GiveUpLate() EXCLUDES(mu_);
  static void GiveUp(const std::vector<TakenCall*>& calls, const grpc::Status& status);

  // Constant after construction.
  FrontEndParts& parts_;
  const Routes routes_;
  const std::unique_ptr<grpc::AsyncGenericService> service_;

  Mutex mu_;
  CondVar left_;
  std::size_t calls_ GUARDED_BY(mu_) = 0;  // Also those that no client has begun yet,
  std::size_t armed_ GUARDED_BY(mu_) = 0;  // which are as many, until the server is shut down.
  bool draining_ GUARDED_BY(mu_) = false;
  std::array<std::size_t, 3> taken_ GUARDED_BY(mu_) = {};  // By share.
  DueList<TakenCall> silent_ GUARDED_BY(mu_);              // Await their first message.
  DueList<TakenCall> sending_ GUARDED_BY(mu_);             // Await that their client takes what it was sent.

  std::unique_ptr<Tick> tick_ GUARDED_BY(mu_);  // Set once, by the first TakeCallsOn().
};

}  // namespace tandem::grpc_front
