#include "server/rest/colocation_calls.h"

#include <chrono>
#include <ranges>
#include <string>

#include "api/base/duration.h"
#include "profiler/machine.h"
#include "server/rest/reply.h"
#include "server/trace/flight_copy.h"
#include "server/trace/training_spans.h"

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

Json::Int64 Micros(std::chrono::nanoseconds time) {
  return std::chrono::floor<std::chrono::microseconds>(time).count();
}

// What was decided, the newest first.
Json::Value RecentJson(const FlightRecorder* recorder, MonotonicTime now) {
  constexpr std::size_t kMost = 16;
  // A decision is a record, and one more for each trainer; so are the turns of jobs, two each.
  constexpr std::size_t kLookedAt = 2'048;
  Json::Value json(Json::arrayValue);
  if (recorder == nullptr) return json;
  const std::vector<trace::TrainingSpan> spans =
      trace::TrainingSpans(trace::ByTime(recorder->training().Last(kLookedAt)));
  for (const trace::TrainingSpan& span : spans | std::views::reverse | std::views::take(kMost)) {
    const auto hold = span.hold ? span.hold : span.hold_heavy;
    Json::Value& one = json.append(Json::Value(Json::objectValue));
    one["ago_us"] = Micros(now - span.from);
    one["lasted_us"] = Micros(span.to.value_or(now) - span.from);
    one["training"] = trace::StateOf(span);
    one["held_for"] = hold ? Json::Value(std::string(HoldReasonName(*hold))) : Json::Value();
    one["reason"] = trace::ReasonOf(span);
    one["trainers"] = Json::Int64{span.trainers};
    one["requests_under_way"] = Json::Int64{span.requests};
  }
  return json;
}

Json::Value CoresJson(int process) {
  Json::Value json(Json::arrayValue);
  for (const int core : AllowedCoreNumbers(process)) json.append(core);
  return json;
}

Json::Value TrainerJson(const TrainerState& trainer) {
  Json::Value json(Json::objectValue);
  json["job"] = trainer.job == 0 ? Json::Value() : Json::Value(Json::Int64{trainer.job});
  json["state"] = !trainer.hold ? "running" : trainer.hold == HoldReason::kPaused ? "paused" : "held";
  json["held_for"] = trainer.hold ? Json::Value(std::string(HoldReasonName(*trainer.hold))) : Json::Value();
  json["held_by"] = std::string(HoldMeansName(trainer.means));
  json["threads"] = trainer.threads;
  json["threads_ordered"] = trainer.ordered > 0 ? Json::Value(trainer.ordered) : Json::Value();
  json["permit"] = std::string(PermitName(trainer.permit));
  json["cores"] = trainer.pid == 0 ? Json::Value(Json::arrayValue) : CoresJson(trainer.pid);
  return json;
}

Json::Value StateJson(const ArbiterState& state) {
  Json::Value json(Json::objectValue);
  json["policy"] = state.policy;
  json["requests_under_way"] = Json::Int64{state.pending};
  json["cores"] = CoresJson(0);
  json["trainers"] = Json::Value(Json::arrayValue);
  for (const TrainerState& trainer : state.trainers) json["trainers"].append(TrainerJson(trainer));
  json["trainers_yield"] = state.yields;
  json["training"] = state.trainers.empty() ? "none" : state.hold ? "held" : "runs";
  json["held_for"] = state.hold ? Json::Value(std::string(HoldReasonName(*state.hold))) : Json::Value();
  json["heavy_operators"] = state.trainers.empty() ? "none" : state.hold_heavy ? "held" : "run";
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

void AddColocationRoutes(ServerCore& core, std::vector<Route>& routes) {
  routes.push_back({http::Method::kGet, "/v2/colocation", Immediate([&core](const Call&) -> Result<Json::Value> {
                      Json::Value json = StateJson(core.arbiter.State());
                      json["recent"] = RecentJson(core.recorder, core.clock.Now());
                      return json;
                    })});
}

}  // namespace tandem::rest
