#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// The model-repository extension: index, load (with a body of at most `max_body`), unload. Borrows the core, which
// outlives the routes.
void AddRepositoryRoutes(ServerCore& core, std::size_t max_body, std::vector<Route>& routes);

}  // namespace tandem::rest
