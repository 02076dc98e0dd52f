#include "server/rest/trace_calls.h"

#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "server/jobs/job_service.h"
#include "server/rest/aside.h"
#include "server/rest/query.h"
#include "server/rest/reply.h"
#include "server/rest/side_thread.h"
#include "server/trace/op_tracks.h"
#include "server/trace/request_story.h"
#include "server/trace/story_text.h"
#include "server/trace/trace_sources.h"

namespace tandem::rest {
namespace {

using http::Method;

constexpr double kDefaultSeconds = 5;
constexpr double kMostSeconds = 3600;

Result<const FlightRecorder*> RecorderOf(const ServerCore& core) {
  if (core.recorder != nullptr && core.recorder->on()) return core.recorder;
  return Fail(ErrorCode::kUnsupported, "nothing is recorded: the server was started with --trace-records 0");
}

bool WantsText(const Call& call) {
  return call.exchange->request().head.Header("accept").contains("text/plain");
}

Result<http::Response> Explain(const ServerCore& core, const Call& call) {
  TANDEM_TRY(QueryOf(call, {}));
  TANDEM_ASSIGN(const FlightRecorder* const recorder, RecorderOf(core));
  const trace::FlightCopy copy = trace::CopyOf(*recorder);
  TANDEM_ASSIGN(const trace::RequestStory story, trace::TellStory(copy, call.variables[0], core.clock.Now()));
  if (!WantsText(call)) return http::JsonResponse(200, ToText(trace::StoryJson(story)));
  http::Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = trace::StoryText(story);
  return response;
}

// Waits for the jobs thread, which never waits for this one.
std::vector<RecentOps> OpsSince(jobs::JobService& jobs, MonotonicTime since) {
  // Shared: who answers may still be in it when we have heard.
  const auto answer = std::make_shared<std::promise<std::vector<RecentOps>>>();
  jobs.OpsSince(since, [answer](Result<std::vector<RecentOps>> ops) {
    answer->set_value(ops ? *std::move(ops) : std::vector<RecentOps>());
  });
  return answer->get_future().get();
}

Result<http::Response> Trace(const ServerCore& core, const Call& call) {
  TANDEM_ASSIGN(const Query query, QueryOf(call, {"seconds"}));
  double seconds = kDefaultSeconds;
  if (const auto given = query.find("seconds"); given != query.end()) {
    TANDEM_ASSIGN(seconds, ParseNumber<double>(given->second, "seconds", 0.001, kMostSeconds));
  }
  TANDEM_ASSIGN(const FlightRecorder* const recorder, RecorderOf(core));
  const MonotonicTime now = core.clock.Now();
  const trace::TraceWindow window{.from = now - std::chrono::nanoseconds(std::llround(seconds * 1e9)), .to = now};
  std::vector<trace::TraceSource> more;
  if (core.jobs != nullptr) more.push_back(trace::DrawOps(OpsSince(*core.jobs, window.from)));
  return http::JsonResponse(200, trace::WriteTrace(trace::CopyOf(*recorder), window, more));
}

// Under way and waiting.
constexpr int kMostTraces = 8;

using TraceCall = Result<http::Response> (*)(const ServerCore& core, const Call& call);

Handler Aside(const ServerCore& core, const std::shared_ptr<SideThread>& traces, TraceCall function) {
  return [&core, traces, function](const Call& call) {
    auto place = traces->Enter();
    if (place == nullptr) {
      return call.exchange->Respond(http::ErrorResponse(
          {ErrorCode::kUnavailable, Format("{} traces are being made already; ask again", kMostTraces)}));
    }
    RunAside(traces->thread(), call.exchange, [&core, function, call, place = std::move(place)] {
      auto response = function(core, call);
      call.exchange->Respond(response ? *std::move(response) : http::ErrorResponse(response.error()));
    });
  };
}

}  // namespace

void AddTraceRoutes(ServerCore& core, std::vector<Route>& routes) {
  // A thread for these calls, as looking through all records takes milliseconds and more. Shared by the two handlers.
  const auto traces = std::make_shared<SideThread>("trace", kMostTraces);
  routes.push_back({Method::kGet, "/v2/trace", Aside(core, traces, Trace)});
  routes.push_back({Method::kGet, "/v2/trace/requests/{request}", Aside(core, traces, Explain)});
}

}  // namespace tandem::rest
