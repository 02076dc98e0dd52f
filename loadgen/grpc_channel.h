#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <grpc/support/time.h>
#include <grpcpp/channel.h>

#include "api/base/result.h"
#include "loadgen/grpc_transport.h"

namespace tandem::loadgen {

// Opens options.channels connections and waits for them, options.connect_timeout at most for each step. The error says
// what failed: the name, the connection, the certificate, or that it is not gRPC that is spoken there. Channels are
// shared as grpc++ demands.
[[nodiscard]] Result<std::vector<std::shared_ptr<grpc::Channel>>> OpenChannels(const GrpcTransportOptions& options);

// A deadline for gRPC.
[[nodiscard]] gpr_timespec FromNow(std::chrono::nanoseconds time);

}  // namespace tandem::loadgen
