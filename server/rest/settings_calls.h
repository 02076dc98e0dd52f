#pragma once

#include <vector>

#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// The logging and trace extensions' settings. Borrows the core, which outlives the routes.
void AddSettingsRoutes(ServerCore& core, std::vector<Route>& routes);

}  // namespace tandem::rest
