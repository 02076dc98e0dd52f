#include "server/rest/shared_memory_calls.h"

#include <string>

#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

using http::Method;

Json::Value Describe(const SharedRegion& region) {
  Json::Value item(Json::objectValue);
  item["name"] = region.name();
  item["key"] = region.key();
  item["offset"] = Json::UInt64{region.offset()};
  item["byte_size"] = Json::UInt64{region.byte_size()};
  return item;
}

Result<Json::Value> RegionStatus(const SharedRegions& regions, const Call& call) {
  Json::Value list(Json::arrayValue);
  if (call.variables.empty()) {
    for (const auto& region : regions.All()) list.append(Describe(*region));
    return list;
  }
  TANDEM_ASSIGN(const auto region, regions.Find(call.variables[0]));
  list.append(Describe(*region));
  return list;
}

Result<Json::Value> Register(SharedRegions& regions, const Call& call) {
  TANDEM_ASSIGN(const Json::Value body, ParseObject(call.exchange->request().body));
  TANDEM_ASSIGN(const auto key, StringMember(body, "key"));
  TANDEM_ASSIGN(const auto offset, UnsignedMember(body, "offset"));
  TANDEM_ASSIGN(const auto byte_size, UnsignedMember(body, "byte_size"));
  if (!key) return Invalid("'key' is missing");
  if (!byte_size) return Invalid("'byte_size' is missing");
  TANDEM_TRY(regions.Register(call.variables[0], *key, offset.value_or(0), *byte_size));
  return Json::Value(Json::objectValue);
}

Result<Json::Value> Unregister(SharedRegions& regions, const Call& call) {
  TANDEM_TRY(ParseObject(call.exchange->request().body));
  if (call.variables.empty()) {
    regions.UnregisterAll();
  } else {
    regions.Unregister(call.variables[0]);
  }
  return Json::Value(Json::objectValue);
}

}  // namespace

void AddSharedMemoryRoutes(SharedRegions& regions, std::vector<Route>& routes) {
  SharedRegions* r = &regions;
  const Handler status = Immediate([r](const Call& call) { return RegionStatus(*r, call); });
  const Handler unregister = Immediate([r](const Call& call) { return Unregister(*r, call); });
  const Handler none = Immediate([](const Call&) -> Result<Json::Value> { return Json::Value(Json::arrayValue); });
  const Handler nothing = Immediate([](const Call&) -> Result<Json::Value> { return Json::Value(Json::objectValue); });
  const Handler no_cuda = Immediate([](const Call&) -> Result<Json::Value> {
    return Fail(ErrorCode::kUnsupported, "CUDA shared memory is not supported: this build has no CUDA");
  });
  routes.insert(routes.end(), {
                                  {Method::kGet, "/v2/systemsharedmemory/status", status},
                                  {Method::kGet, "/v2/systemsharedmemory/region/{region}/status", status},
                                  {Method::kPost, "/v2/systemsharedmemory/region/{region}/register",
                                   Immediate([r](const Call& call) { return Register(*r, call); })},
                                  {Method::kPost, "/v2/systemsharedmemory/region/{region}/unregister", unregister},
                                  {Method::kPost, "/v2/systemsharedmemory/unregister", unregister},
                                  {Method::kGet, "/v2/cudasharedmemory/status", none},
                                  {Method::kGet, "/v2/cudasharedmemory/region/{region}/status", none},
                                  {Method::kPost, "/v2/cudasharedmemory/region/{region}/register", no_cuda},
                                  {Method::kPost, "/v2/cudasharedmemory/region/{region}/unregister", nothing},
                                  {Method::kPost, "/v2/cudasharedmemory/unregister", nothing},
                              });
}

}  // namespace tandem::rest
