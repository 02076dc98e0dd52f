#include "server/rest/colocation_calls.h"

#include <string>

#include "api/base/duration.h"
#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

Json::Value QuotaJson(const ArbiterState::Quota& quota) {
  Json::Value json(Json::objectValue);
  json["group"] = quota.group;
  json["cores"] = quota.limit->cores();
  json["period_ms"] = Ms(quota.limit->period);
  json["learning"] = quota.learning;
  json["throttled_periods"] = Json::UInt64{quota.throttled_periods};
  return json;
}

Json::Value StateJson(const ArbiterState& state) {
  Json::Value json(Json::objectValue);
  json["policy"] = state.policy;
  json["requests_under_way"] = Json::Int64{state.pending};
  json["trainers"] = Json::UInt64{state.trainers};
  json["training"] = state.trainers == 0 ? "none" : state.hold ? "held" : "runs";
  json["held_for"] = state.hold ? Json::Value(std::string(HoldReasonName(*state.hold))) : Json::Value();
  json["heavy_operators"] = state.trainers == 0 ? "none" : state.hold_heavy ? "held" : "run";
  json["training_threads"] = state.threads > 0 ? Json::Value(state.threads) : Json::Value();
  json["request_demand"] = Json::Value();
  if (state.demand) {
    Json::Value& demand = json["request_demand"];
    demand["cores"] = state.demand->cores;
    demand["each_ms"] = Ms(state.demand->each);
    demand["uneven_ms"] = Ms(state.demand->uneven);
  }
  json["decisions"] = Json::UInt64{state.decisions.count()};
  json["cpu_limits"] = Json::Value(Json::arrayValue);
  for (const ArbiterState::Quota& quota : state.quotas) {
    if (quota.limit) json["cpu_limits"].append(QuotaJson(quota));
  }
  return json;
}

}  // namespace

void AddColocationRoutes(const Arbiter& arbiter, std::vector<Route>& routes) {
  routes.push_back({http::Method::kGet, "/v2/colocation",
                    Immediate([&arbiter](const Call&) -> Result<Json::Value> { return StateJson(arbiter.State()); })});
}

}  // namespace tandem::rest
