#pragma once

#include "server/grpc/call.h"
#include "server/grpc/front_end_parts.h"

namespace tandem::grpc_front {

// Server reflection, grpc.reflection.v1 and v1alpha. Open to all: it tells nothing but the published protocol. gRPC
// 1.51's own needs a thread for every open call. `parts` is borrowed.
void AddReflectionRoutes(FrontEndParts& parts, Routes& routes);

}  // namespace tandem::grpc_front
