#pragma once

#include "server/grpc/call.h"
#include "server/grpc/front_end_parts.h"

namespace tandem::grpc_front {

// inference.GRPCInferenceService: parses, calls into the server's parts, packs the answer. `parts` is borrowed.
void AddInferenceRoutes(FrontEndParts& parts, Routes& routes);

}  // namespace tandem::grpc_front
