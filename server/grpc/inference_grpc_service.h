#pragma once

#include <memory>

#include <grpcpp/impl/service_type.h>

#include "server/grpc/front_end_parts.h"

namespace tandem::grpc_front {

// inference.GRPCInferenceService: checks the token, parses, calls into the server's parts, packs the answer. Owned by
// GrpcServer. `parts` is borrowed. Thread-safe, as gRPC demands.
[[nodiscard]] std::unique_ptr<grpc::Service> MakeInferenceGrpcService(FrontEndParts& parts);

}  // namespace tandem::grpc_front
