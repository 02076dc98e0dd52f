#include "server/rest/profile_calls.h"

#include <memory>
#include <string>
#include <utility>

#include "api/base/duration.h"
#include "api/wire/json_document.h"
#include "server/jobs/job_service.h"
#include "server/profile/model_profiler.h"
#include "server/rest/aside.h"
#include "server/rest/query.h"
#include "server/rest/reply.h"
#include "server/rest/side_thread.h"

namespace tandem::rest {
namespace {

using http::Method;

constexpr Json::ArrayIndex kMostDimensions = 64;

Result<Shape> ShapeOf(const std::string& input, const Json::Value& given) {
  const auto bad = [&] {
    return Invalid("the shape of '{}' is {}; it must be a list of whole numbers from 0 on", Excerpt(input),
                   JsonExcerpt(given));
  };
  if (!given.isArray() || given.size() > kMostDimensions) return bad();
  Shape shape;
  for (const Json::Value& dimension : given) {
    if (!dimension.isInt64() || dimension.asInt64() < 0) return bad();
    shape.push_back(dimension.asInt64());
  }
  return shape;
}

Result<ProfileRequest> RequestOf(const Call& call) {
  TANDEM_TRY(QueryOf(call, {}));
  TANDEM_ASSIGN(const Json::Value body, ParseObject(call.exchange->request().body));
  ProfileRequest request{.model = call.variables[0],
                         .version = call.variables.size() > 1 ? call.variables[1] : std::string()};
  for (const std::string& member : body.getMemberNames()) {
    if (member != "runs" && member != "shapes") {
      return Invalid("member '{}' is not known; known: runs, shapes", Excerpt(member));
    }
  }
  TANDEM_ASSIGN(request.runs, UnsignedMember(body, "runs"));
  const Json::Value& shapes = body["shapes"];
  if (!shapes.isNull() && !shapes.isObject()) return Invalid("'shapes' must be an object, not {}", Describe(shapes));
  if (shapes.isNull()) return request;
  for (const std::string& input : shapes.getMemberNames()) {
    TANDEM_ASSIGN(request.shapes[input], ShapeOf(input, shapes[input]));
  }
  return request;
}

Json::Value InputsJson(const std::vector<TensorSpec>& inputs) {
  Json::Value list(Json::arrayValue);
  for (const TensorSpec& input : inputs) {
    Json::Value& one = list.append(Json::Value(Json::objectValue));
    one["name"] = input.name;
    one["datatype"] = std::string(DataTypeName(input.type));
    one["shape"] = Json::Value(Json::arrayValue);
    for (const std::int64_t dimension : input.shape) one["shape"].append(Json::Int64{dimension});
  }
  return list;
}

Json::Value ProfileJson(const ModelProfile& profile) {
  Json::Value json(Json::objectValue);
  json["model"] = profile.model;
  json["version"] = profile.version;
  json["inputs"] = InputsJson(profile.inputs);
  json["runs"] = Json::UInt64{profile.session.runs};
  json["run_ms"] = Ms(profile.session.run_median);
  json["unread"] = Json::UInt64{profile.session.unread};
  std::chrono::nanoseconds all{0};
  for (const NodeProfile& node : profile.session.nodes) all += node.total;
  json["total_ms"] = Ms(all);
  json["ops"] = Json::Value(Json::arrayValue);
  for (const NodeProfile& node : profile.session.nodes) {
    Json::Value& one = json["ops"].append(Json::Value(Json::objectValue));
    one["kind"] = node.op;
    one["name"] = node.name;
    one["provider"] = node.provider;
    one["count"] = Json::UInt64{node.count};
    one["total_ms"] = Ms(node.total);
    one["typical_ms"] = Ms(node.median);
    one["share"] = all.count() > 0 ? Ms(node.total) / Ms(all) : 0.0;
  }
  return json;
}

// With what trainers do to the model.
void Answer(const ServerCore& core, const Call& call, const ModelProfile& profile) {
  Json::Value json = ProfileJson(profile);
  json["training"] = Json::Value(Json::arrayValue);
  if (core.jobs == nullptr) return call.exchange->Respond(http::JsonResponse(200, JsonLine(json)));
  core.jobs->Beside(profile.model,
                    [exchange = call.exchange, json = std::move(json)](Result<Json::Value> beside) mutable {
                      if (beside) json["training"] = *std::move(beside);
                      exchange->Respond(http::JsonResponse(200, JsonLine(json)));
                    });
}

}  // namespace

void AddProfileRoutes(ServerCore& core, std::vector<Route>& routes) {
  // One at a time: it loads a model and runs it. Shared by the two handlers.
  const auto profiles = std::make_shared<SideThread>("profile", 1);
  const Handler handler = [&core, profiles](const Call& call) {
    auto request = RequestOf(call);
    if (!request) return call.exchange->Respond(http::ErrorResponse(request.error()));
    auto place = profiles->Enter();
    if (place == nullptr) {
      return call.exchange->Respond(
          http::ErrorResponse({ErrorCode::kUnavailable, "another model is being profiled; ask again"}));
    }
    RunAside(profiles->thread(), call.exchange,
             [&core, call, request = *std::move(request), place = std::move(place)]() mutable {
               const ModelProfiler profiler(core.clock, core.repository, core.inference);
               const auto profile = profiler.Profile(request, *call.exchange->cancel());
               place.reset();  // Whoever has the answer may ask again.
               if (!profile) return call.exchange->Respond(http::ErrorResponse(profile.error()));
               Answer(core, call, *profile);
             });
  };
  routes.push_back({Method::kPost, "/v2/models/{model}/profile", handler});
  routes.push_back({Method::kPost, "/v2/models/{model}/versions/{version}/profile", handler});
}

}  // namespace tandem::rest
