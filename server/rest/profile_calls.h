#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// What the operators of a served model take. Borrows the core, which outlives the routes.
void AddProfileRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
