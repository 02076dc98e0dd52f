#include "server/rest/rest_api.h"

#include <utility>
#include <vector>

#include "server/rest/colocation_calls.h"
#include "server/rest/infer_call.h"
#include "server/rest/memory_calls.h"
#include "server/rest/model_calls.h"
#include "server/rest/profile_calls.h"
#include "server/rest/repository_calls.h"
#include "server/rest/settings_calls.h"
#include "server/rest/shared_memory_calls.h"
#include "server/rest/trace_calls.h"
#include "server/rest/train_calls.h"
#include "server/rest/turn_calls.h"

namespace tandem::rest {
namespace {

using http::Method;

Route MetricsRoute(std::function<std::string()> metrics) {
  return {Method::kGet, "/metrics", [metrics = std::move(metrics)](const Call& call) {
            http::Response response;
            response.content_type = "text/plain; version=0.0.4; charset=utf-8";
            response.body = metrics();
            call.exchange->Respond(std::move(response));
          }};
}

std::vector<Route> AllRoutes(ServerCore& core, const TokenCheck& tokens, RestApi::Options options) {
  std::vector<Route> routes;
  // Inference first: it is looked up most.
  AddInferRoutes(core, options.max_body, routes);
  AddModelRoutes(core, routes);
  AddRepositoryRoutes(core, options.max_body, routes);
  AddSharedMemoryRoutes(core.regions, routes);
  AddSettingsRoutes(core, routes);
  AddColocationRoutes(core, routes);
  AddTurnRoutes(core, routes);
  AddMemoryRoutes(core, routes);
  AddTraceRoutes(core, routes);
  AddProfileRoutes(core, routes);
  AddTrainRoutes(core, tokens, routes);
  routes.push_back(MetricsRoute(std::move(options.metrics)));
  routes.push_back({Method::kGet, "/v2/openapi.json",
                    [](const Call& call) { call.exchange->Respond(http::JsonResponse(200, OpenApiDocument())); }});
  return routes;
}

// Probes carry no credentials and learn nothing but up or down.
bool IsProbe(std::string_view path) {
  return path == "/v2/health/live" || path == "/v2/health/ready";
}

}  // namespace

RestApi::RestApi(ServerCore& core, const TokenCheck& tokens, Options options)
    : tokens_(tokens), router_(AllRoutes(core, tokens, std::move(options))) {}

std::optional<http::Response> RestApi::Refuse(const http::RequestHead& head) const {
  if (auto refusal = RefuseStranger(head)) return refusal;
  return router_.RefuseBody(head);
}

std::optional<http::Response> RestApi::RefuseStranger(const http::RequestHead& head) const {
  if (IsProbe(head.path()) || tokens_.Allows(head.Header("authorization"))) return std::nullopt;
  return http::ErrorResponse({ErrorCode::kUnauthenticated, "a valid bearer token is needed"});
}

void RestApi::Handle(std::shared_ptr<http::Exchange> exchange) const {
  if (auto refusal = RefuseStranger(exchange->request().head)) return exchange->Respond(*std::move(refusal));
  router_.Dispatch(std::move(exchange));
}

Router MetricsRouter(std::function<std::string()> metrics) {
  return Router({MetricsRoute(std::move(metrics))});
}

}  // namespace tandem::rest
