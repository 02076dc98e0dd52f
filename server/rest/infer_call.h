#pragma once

#include <cstddef>
#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// POST …/infer: JSON and binary tensors, compressed or not. Borrows the core, which outlives the routes.
// `max_body`: the bound on a body after decompression.
void AddInferRoutes(ServerCore& core, std::size_t max_body, std::vector<Route>& routes);

}  // namespace tandem::rest
