#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Health, metadata, readiness, configuration and statistics. Borrows the core, which outlives the routes.
void AddModelRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
