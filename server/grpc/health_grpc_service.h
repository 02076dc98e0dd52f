#pragma once

#include <memory>

#include <grpcpp/impl/service_type.h>

#include "server/grpc/front_end_parts.h"

namespace tandem::grpc_front {

// grpc.health.v1.Health over the server's readiness, for "" and for "inference.GRPCInferenceService". gRPC's own health
// service must be told of every change; this one looks. Open to all. Owned by GrpcServer; `parts` is borrowed.
[[nodiscard]] std::unique_ptr<grpc::Service> MakeHealthGrpcService(FrontEndParts& parts);

}  // namespace tandem::grpc_front
