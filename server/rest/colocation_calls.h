#pragma once

#include <vector>

#include "colocation/arbiter.h"
#include "server/rest/router.h"

namespace tandem::rest {

// How training stands behind inference just now. Borrows the arbiter, which outlives the routes.
void AddColocationRoutes(const Arbiter& arbiter, std::vector<Route>& routes);

}  // namespace tandem::rest
