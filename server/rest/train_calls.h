#pragma once

#include <vector>

#include "server/auth/token_check.h"
#include "server/core/server_core.h"
#include "server/rest/router.h"

namespace tandem::rest {

// Training jobs: submit, list, show, control, publish, and what they tell. A job's owner is the name of
// the token that submitted it. Borrows the core and the tokens, which outlive the routes.
void AddTrainRoutes(ServerCore& core, const TokenCheck& tokens, std::vector<Route>& routes);

}  // namespace tandem::rest
