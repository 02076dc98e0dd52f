#pragma once

#include <memory>
#include <string_view>

#include "api/base/mutex.h"
#include "api/base/result.h"
#include "server/grpc/call.h"
#include "server/grpc/front_end_parts.h"

namespace grpc {
class AsyncGenericService;
}

namespace tandem::grpc_front {

class CompletionLoop;

// All calls of the server, of whatever method: the one generic service, from which every call is taken and given to the
// handler that its method has. Owned by GrpcServer; outlives every call. Thread-safe.
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
  // Returns when the last call has ended; the server must have been shut down.
  void WaitUntilNone() EXCLUDES(mu_);

 private:
  class TakenCall;

  [[nodiscard]] Result<std::shared_ptr<CallHandler>> MakeHandler(const std::string& method, Call& call) EXCLUDES(mu_);
  [[nodiscard]] Status Admit(const Call& call) const;
  void Enter() EXCLUDES(mu_);
  void Leave() EXCLUDES(mu_);
  // Of a call that has entered.
  [[nodiscard]] Status CheckRoom() EXCLUDES(mu_);

  // Constant after construction.
  FrontEndParts& parts_;
  const Routes routes_;
  const std::unique_ptr<grpc::AsyncGenericService> service_;

  Mutex mu_;
  CondVar left_;
  std::size_t calls_ GUARDED_BY(mu_) = 0;  // Also those that no client has begun yet,
  std::size_t armed_ GUARDED_BY(mu_) = 0;  // which are as many, until the server is shut down.
};

}  // namespace tandem::grpc_front
