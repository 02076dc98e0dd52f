#include "server/rest/memory_calls.h"

#include "server/memory/memory_account.h"
#include "server/rest/memory_json.h"
#include "server/rest/reply.h"

namespace tandem::rest {

void AddMemoryRoutes(ServerCore& core, std::vector<Route>& routes) {
  routes.push_back({http::Method::kGet, "/v2/memory", Immediate([&core](const Call&) -> Result<Json::Value> {
                      if (core.memory == nullptr) return Fail(ErrorCode::kUnsupported, "nobody counts memory");
                      return MemoryToJson(core.memory->Map());
                    })});
}

}  // namespace tandem::rest
