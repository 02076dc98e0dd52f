#include "server/rest/turn_calls.h"

#include <chrono>
#include <string>
#include <utility>

#include "api/wire/json_text.h"
#include "colocation/job_turns.h"
#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

using http::Method;

double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Json::Value JobTurnJson(const TurnBook::View& view) {
  Json::Value json(Json::objectValue);
  json["job"] = Json::UInt64{std::to_underlying(view.job.session)};
  json["lane"] = Json::UInt64{std::to_underlying(view.job.lane)};
  json["priority"] = view.job.priority;
  json["state"] = view.paused ? "paused" : std::string(TurnStateName(view.state));
  json["overdue"] = view.overdue;
  json["turns"] = Json::UInt64{view.turns};
  json["ran_seconds"] = Seconds(view.ran);
  json["waited_seconds"] = Seconds(view.waited);
  json["remaining_seconds"] = view.remaining ? Json::Value(Seconds(*view.remaining)) : Json::Value();
  return json;
}

// The upper bound of the bucket in which so many of a hundred are; null: there are none.
Json::Value PercentileMicros(const AcknowledgementTimes& times, std::uint64_t percent) {
  std::uint64_t all = 0;
  for (const std::uint64_t count : times.counts) all += count;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < times.counts.size(); ++i) {
    seen += times.counts[i];
    if (all > 0 && seen * 100 >= all * percent) return Json::Int64{AcknowledgementTimes::Bound(i).count()};
  }
  return {};
}

Json::Value TurnsJson(const TurnsState& state) {
  Json::Value json(Json::objectValue);
  json["policy"] = std::string(state.policy);
  json["policies"] = Json::Value(Json::arrayValue);
  for (const std::string_view name : JobPolicyNames()) json["policies"].append(std::string(name));
  json["switches"] = Json::UInt64{state.switches};
  for (const std::uint64_t percent : {50, 99}) {
    json["switch_us"]["p" + std::to_string(percent)] = PercentileMicros(state.switch_times, percent);
  }
  json["jobs"] = Json::Value(Json::arrayValue);
  for (const TurnBook::View& view : state.jobs) json["jobs"].append(JobTurnJson(view));
  return json;
}

Result<JobTurns*> TurnsOf(const ServerCore& core) {
  if (core.turns == nullptr) return Fail(ErrorCode::kUnavailable, "{}", core.training_off);
  return core.turns;
}

Result<Json::Value> Change(const ServerCore& core, const Call& call) {
  TANDEM_ASSIGN(JobTurns* const turns, TurnsOf(core));
  TANDEM_ASSIGN(const Json::Value body, ParseObject(call.exchange->request().body));
  for (const std::string& key : body.getMemberNames()) {
    if (key != "policy") return Invalid("turns have no setting '{}'; there is policy", Excerpt(key));
  }
  const Json::Value& name = body["policy"];
  if (!name.isString()) return Invalid("policy must be a string, not {}", Describe(name));
  TANDEM_ASSIGN(auto policy, MakeJobPolicy(Excerpt(name.asString())));
  turns->SetPolicy(std::move(policy));
  return TurnsJson(turns->State());
}

}  // namespace

void AddTurnRoutes(ServerCore& core, std::vector<Route>& routes) {
  const ServerCore* c = &core;
  routes.push_back({Method::kGet, "/v2/train/turns", Immediate([c](const Call&) -> Result<Json::Value> {
                      TANDEM_ASSIGN(const JobTurns* const turns, TurnsOf(*c));
                      return TurnsJson(turns->State());
                    })});
  routes.push_back({Method::kPost, "/v2/train/turns", Immediate([c](const Call& call) { return Change(*c, call); })});
}

}  // namespace tandem::rest
