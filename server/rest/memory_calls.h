#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Who has how much of the machine's memory, and who waits for it. Borrows the core, which outlives the routes.
void AddMemoryRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
