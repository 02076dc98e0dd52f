#pragma once

#include "server/grpc/call.h"
#include "server/grpc/front_end_parts.h"

namespace tandem::grpc_front {

// grpc.health.v1.Health over the server's readiness, for "" and for "inference.GRPCInferenceService". gRPC's own health
// service must be told of every change; this one looks. Open to all. `parts` is borrowed.
void AddHealthRoutes(FrontEndParts& parts, Routes& routes);

}  // namespace tandem::grpc_front
