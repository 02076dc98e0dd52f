#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// How training stands behind inference just now, and what was decided of it lately. Borrows the core, which outlives
// the routes.
void AddColocationRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
