#pragma once

#include <vector>

#include "memory/shared_regions.h"
#include "server/rest/router.h"

namespace tandem::rest {

// The system and CUDA shared-memory extensions. Borrows the regions, which outlive the routes.
void AddSharedMemoryRoutes(SharedRegions& regions, std::vector<Route>& routes);

}  // namespace tandem::rest
