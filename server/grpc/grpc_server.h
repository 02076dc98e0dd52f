#pragma once

#include <chrono>
#include <memory>

#include "api/base/result.h"
#include "server/core/server_core.h"
#include "server/grpc/grpc_options.h"

namespace tandem {

// The gRPC front end: inference.GRPCInferenceService, grpc.health.v1.Health and server reflection on one port. Made and
// stopped by the lifecycle, on one thread; calls run on its own threads and, for answers, on the dispatcher's.
class GrpcServer {
 public:
  // Listens and serves when it returns. `core` and its parts must outlive the server. An address that cannot be bound
  // or a certificate that cannot be read is an error that names it.
  [[nodiscard]] static Result<std::unique_ptr<GrpcServer>> Start(GrpcOptions options, ServerCore& core);
  // Drain(), with a moment for answers that are on their way out.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // The port that is listened on.
  [[nodiscard]] int port() const;

  // Takes no new connections and calls; waits for those under way; cancels what is left after `grace` and waits until
  // that has ended too. Health says NOT_SERVING from the start.
  void Drain(std::chrono::milliseconds grace);

 private:
  struct Parts;
  explicit GrpcServer(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem
