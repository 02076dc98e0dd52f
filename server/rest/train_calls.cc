#include "server/rest/train_calls.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "api/wire/training_job_json.h"
#include "api/wire/training_memory_json.h"
#include "server/jobs/job_service.h"
#include "server/rest/query.h"
#include "server/rest/reply.h"
#include "server/rest/train_json.h"
#include "server/rest/train_streams.h"

namespace tandem::rest {
namespace {

using http::Method;
using jobs::JobId;
using jobs::JobService;

void Answer(const Call& call, const Error& error) {
  call.exchange->Respond(http::ErrorResponse(error));
}

// Answers with what `to_json` makes of the result, whenever it comes.
template <typename T, typename Function>
JobService::Done<T> AnswerWith(const Call& call, Function to_json) {
  return [exchange = call.exchange, to_json = std::move(to_json)](Result<T> result) {
    exchange->Respond(result ? http::JsonResponse(200, JsonLine(to_json(*result)))
                             : http::ErrorResponse(result.error()));
  };
}

// Which job a path names; one whose number is none cannot be there.
Result<JobId> IdOf(const Call& call) {
  const auto id = ParseNumber<JobId>(call.variables[0], "the job", 1, std::numeric_limits<JobId>::max());
  if (!id) return Fail(ErrorCode::kNotFound, "there is no job '{}'", Excerpt(call.variables[0]));
  return *id;
}

// The job of a call's body; when it is none all that is wrong with it has been answered.
std::optional<TrainingJob> JobIn(const Call& call) {
  const Bytes body = call.exchange->TakeBody();
  const std::string_view text(reinterpret_cast<const char*>(body.view.data()), body.size());
  auto job = ParseTrainingJob(text);
  if (job) return *std::move(job);
  Json::Value answer;
  answer["error"] = job.error().ToError().message;
  answer["problems"] = job.error().ToJson();
  call.exchange->Respond(http::JsonResponse(400, JsonLine(answer)));
  return std::nullopt;
}

void Estimate(JobService& jobs, const Call& call) {
  auto job = JobIn(call);
  if (job) jobs.Estimate(*std::move(job), AnswerWith<MemoryEstimate>(call, MemoryEstimateToJson));
}

void Submit(JobService& jobs, const Call& call, const TokenCheck& tokens) {
  auto job = JobIn(call);
  if (!job) return;
  const auto& head = call.exchange->request().head;
  jobs.Submit({.job = *std::move(job),
               .owner = tokens.NameOf(head.Header("authorization")).value_or(TokenCheck::kNobody),
               .idempotency_key = std::string(head.Header("idempotency-key"))},
              [exchange = call.exchange](const Result<jobs::JobStore::Submitted>& submitted) {
                if (!submitted) return exchange->Respond(http::ErrorResponse(submitted.error()));
                auto response = http::JsonResponse(submitted->is_new ? 201 : 200, JsonLine(JobToJson(submitted->job)));
                response.headers.emplace_back("Location", Format("/v2/train/jobs/{}", submitted->job.id));
                exchange->Respond(std::move(response));
              });
}

Result<jobs::JobQuery> ListQuery(const Call& call) {
  TANDEM_ASSIGN(const Query parameters, QueryOf(call, {"state", "owner", "limit", "before"}));
  jobs::JobQuery query;
  for (const auto& [name, value] : parameters) {
    if (name == "limit") {
      TANDEM_ASSIGN(query.limit, ParseNumber<int>(value, "limit", 1, jobs::JobQuery::kMaxPage));
    } else if (name == "owner") {
      query.owner = value;
    } else if (name == "before") {
      TANDEM_ASSIGN(query.before, ParseNumber<JobId>(value, "before", 1, std::numeric_limits<JobId>::max()));
    } else {
      std::string_view rest = value;
      while (!rest.empty()) {
        const std::string_view one = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(rest.size(), one.size() + 1));
        const auto state = jobs::ParseJobState(one);
        if (!state) return Invalid("state is '{}', which is no state of a job", Excerpt(one));
        query.states.push_back(*state);
      }
    }
  }
  return query;
}

void List(JobService& jobs, const Call& call) {
  const auto query = ListQuery(call);
  if (!query) return Answer(call, query.error());
  jobs.List(*query, AnswerWith<jobs::JobPage>(call, PageToJson));
}

void Delete(JobService& jobs, const Call& call, JobId id) {
  jobs.Delete(id, [exchange = call.exchange](const Status& done) {
    exchange->Respond(done ? http::JsonResponse(200, "{}") : http::ErrorResponse(done.error()));
  });
}

Result<bool> FlagIn(const Query& query, const char* name, bool absent) {
  const auto found = query.find(name);
  if (found == query.end()) return absent;
  if (found->second == "true" || found->second == "false") return found->second == "true";
  return Invalid("{} is '{}'; it must be true or false", name, Excerpt(found->second));
}

void Logs(JobService& jobs, const Call& call, JobId id) {
  const auto read = [&]() -> Result<LogRequest> {
    TANDEM_ASSIGN(const Query query, QueryOf(call, {"offset", "follow"}));
    LogRequest request{.job = id};
    if (const auto offset = query.find("offset"); offset != query.end()) {
      TANDEM_ASSIGN(request.offset, ParseNumber<std::uint64_t>(offset->second, "offset", 0, std::uint64_t{1} << 62));
    }
    TANDEM_ASSIGN(request.follow, FlagIn(query, "follow", false));
    return request;
  };
  const auto request = read();
  if (!request) return Answer(call, request.error());
  StreamLog(jobs, *request, call.exchange);
}

void Events(JobService& jobs, const Call& call, std::optional<JobId> id) {
  const auto read = [&]() -> Result<EventRequest> {
    TANDEM_ASSIGN(const Query query, QueryOf(call, {"after", "follow"}));
    EventRequest request{.job = id};
    std::string after(call.exchange->request().head.Header("last-event-id"));
    if (const auto given = query.find("after"); given != query.end()) after = given->second;
    if (!after.empty()) {
      TANDEM_ASSIGN(request.after, ParseNumber<std::int64_t>(after, "Last-Event-ID", 0, std::int64_t{1} << 62));
    }
    TANDEM_ASSIGN(request.follow, FlagIn(query, "follow", true));
    return request;
  };
  const auto request = read();
  if (!request) return Answer(call, request.error());
  StreamEvents(jobs, *request, call.exchange);
}

void Model(JobService& jobs, const Call& call, JobId id) {
  if (const auto query = QueryOf(call, {}); !query) return Answer(call, query.error());
  StreamModel(jobs, id, call.exchange);
}

using JobCall = void (*)(JobService&, const Call&, JobId);

// A handler of a call that names a job.
Handler OfJob(ServerCore* core, JobCall function) {
  return [core, function](const Call& call) {
    if (core->jobs == nullptr) return Answer(call, {ErrorCode::kUnavailable, core->training_off});
    const auto id = IdOf(call);
    if (!id) return Answer(call, id.error());
    function(*core->jobs, call, *id);
  };
}

Handler OfAll(ServerCore* core, std::function<void(JobService&, const Call&)> function) {
  return [core, function = std::move(function)](const Call& call) {
    if (core->jobs == nullptr) return Answer(call, {ErrorCode::kUnavailable, core->training_off});
    function(*core->jobs, call);
  };
}

// A call that does one thing with a job and shows it afterwards.
template <auto kMember>
void Control(JobService& jobs, const Call& call, JobId id) {
  (jobs.*kMember)(id, AnswerWith<jobs::JobRecord>(call, JobToJson));
}

}  // namespace

void AddTrainRoutes(ServerCore& core, const TokenCheck& tokens, std::vector<Route>& routes) {
  ServerCore* c = &core;
  const std::string job = "/v2/train/jobs/{job}";
  routes.insert(
      routes.end(),
      {{Method::kPost, "/v2/train/jobs",
        OfAll(c, [&tokens](JobService& jobs, const Call& call) { Submit(jobs, call, tokens); })},
       {Method::kGet, "/v2/train/jobs", OfAll(c, List)},
       {Method::kPost, "/v2/train/estimate", OfAll(c, Estimate)},
       {Method::kGet, "/v2/train/events",
        OfAll(c, [](JobService& jobs, const Call& call) { Events(jobs, call, std::nullopt); })},
       {Method::kGet, job, OfJob(c, Control<&JobService::Get>)},
       {Method::kDelete, job, OfJob(c, Delete)},
       {Method::kPost, job + "/pause", OfJob(c, Control<&JobService::Pause>)},
       {Method::kPost, job + "/resume", OfJob(c, Control<&JobService::Resume>)},
       {Method::kPost, job + "/cancel", OfJob(c, Control<&JobService::Cancel>)},
       {Method::kPost, job + "/publish", OfJob(c, Control<&JobService::Publish>)},
       {Method::kPost, job + "/rollback", OfJob(c, Control<&JobService::RollBack>)},
       {Method::kGet, job + "/model", OfJob(c, Model)},
       {Method::kGet, job + "/logs", OfJob(c, Logs)},
       {Method::kGet, job + "/events",
        OfJob(c, [](JobService& jobs, const Call& call, JobId id) { Events(jobs, call, id); })},
       {Method::kGet, job + "/checkpoints",
        OfJob(c,
              [](JobService& jobs, const Call& call, JobId id) {
                jobs.Checkpoints(id, AnswerWith<std::vector<jobs::CheckpointRecord>>(call, CheckpointsToJson));
              })},
       {Method::kGet, job + "/profile",
        OfJob(c, [](JobService& jobs, const Call& call,
                    JobId id) { jobs.Profile(id, AnswerWith<Json::Value>(call, std::identity())); })},
       {Method::kGet, job + "/metrics", OfJob(c, [](JobService& jobs, const Call& call, JobId id) {
          jobs.Series(id, AnswerWith<std::map<std::string, std::vector<jobs::SeriesPoint>>>(call, SeriesToJson));
        })}});
}

}  // namespace tandem::rest
