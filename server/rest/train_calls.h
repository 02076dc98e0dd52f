#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Training jobs: submit, list, show, control, publish, and what they tell. Borrows the core, which outlives the routes.
void AddTrainRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
