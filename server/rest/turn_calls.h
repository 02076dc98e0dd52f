#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Whose iteration is next among training jobs, and by which policy that is decided. Borrows the core, which outlives
// the routes.
void AddTurnRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
