#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Why a request took so long or was refused, and all that happened lately, as a file for Perfetto. Borrows the core,
// which outlives the routes.
void AddTraceRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
