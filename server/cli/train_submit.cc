#include "server/cli/train_submit.h"

#include <algorithm>
#include <cstdio>
#include <expected>
#include <memory>
#include <optional>
#include <utility>

#include <signal.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "server/cli/command.h"
#include "server/cli/interruption.h"
#include "server/cli/pretty_json.h"
#include "server/cli/train_progress.h"
#include "server/cli/train_text.h"
#include "server/cli/train_watch.h"

namespace tandem::cli {
namespace {

constexpr const char* kJobs = "/v2/train/jobs";

constexpr const char* kSubmit = "submit";
constexpr const char* kEstimate = "estimate";

int Complain(const char* command, const Error& error, int exit_code) {
  std::fprintf(stderr, "tandem train %s: %s\n", command, PrintableLines(error.message).c_str());
  return exit_code;
}

int Complain(const char* command, const Refusal& refusal) {
  if (refusal.problems.empty()) return Complain(command, refusal.error, kFailed);
  const std::size_t count = refusal.problems.size();
  std::fprintf(stderr, "tandem train %s: the job was refused, for %zu problem%s:\n%s", command, count,
               count == 1 ? "" : "s", ProblemLines(refusal.problems).c_str());
  return kFailed;
}

Status CheckUsage(const char* command, const SubmitOptions& options) {
  if (options.file.empty() && !(options.flags.model && options.flags.data)) {
    return Invalid("give a job file, or --model and --data; see tandem train {} --help", command);
  }
  if (std::ranges::any_of(options.idempotency_key, [](char c) { return c < ' ' || c > '~'; })) {
    return Invalid("--idempotency-key: a key has printable ASCII characters only");
  }
  return {};
}

// The job that is sent; an exit code when there is none, which has been said.
std::expected<Json::Value, int> JobOf(const char* command, const SubmitOptions& options) {
  if (const Status usable = CheckUsage(command, options); !usable) {
    return std::unexpected(Complain(command, usable.error(), kUsage));
  }
  Json::Value document;
  if (!options.file.empty()) {
    auto read = ReadJsonFile(options.file);
    if (!read) return std::unexpected(Complain(command, read.error(), kFailed));
    document = *std::move(read);
  }
  auto job = LayOverJob(std::move(document), options.flags);
  if (!job) return std::unexpected(Complain(command, job.error(), kUsage));
  return *std::move(job);
}

// Prints the job as it is now.
Status ShowAsJson(ApiClient& client, std::int64_t id) {
  TANDEM_ASSIGN(const Json::Value job, client.Get(Format("{}/{}", kJobs, id)));
  std::puts(PrettyJson(job).c_str());
  return {};
}

Result<int> Watch(ApiClient& client, const JobView& job, const SubmitOptions& options,
                  const Interruption& interruption) {
  TANDEM_ASSIGN(const int exit_code, WatchJob(client, job.id, options.json, interruption));
  if (options.json && !interruption.raised()) TANDEM_TRY(ShowAsJson(client, job.id));
  return exit_code;
}

}  // namespace

int SubmitJob(const SubmitOptions& options) {
  const auto job = JobOf(kSubmit, options);
  if (!job) return job.error();
  // Before the job is sent: whoever interrupts from here on is told which job goes on.
  std::optional<Interruption> interruption;
  if (options.watch) {
    ::signal(SIGPIPE, SIG_IGN);
    interruption.emplace();
  }
  const auto client = ApiClient::Connect(options.client);
  if (!client) return Complain(kSubmit, client.error(), UsageOr(client.error(), kFailed));
  HttpHeaders headers;
  if (!options.idempotency_key.empty()) headers.emplace_back("Idempotency-Key", options.idempotency_key);
  const auto answer = (*client)->PostDocument(kJobs, JsonLine(*job), headers);
  if (!answer) return Complain(kSubmit, answer.error());
  const auto view = ReadJobView(*answer);
  if (!view) return Complain(kSubmit, view.error(), kFailed);
  if (options.json && !options.watch) std::puts(PrettyJson(*answer).c_str());
  if (!options.json)
    std::printf("job %lld (%s) is %s\n", static_cast<long long>(view->id), view->name.c_str(), view->state.c_str());
  if (!options.watch) return kDone;
  const auto watched = Watch(**client, *view, options, *interruption);
  return watched ? *watched : Complain(kSubmit, watched.error(), kFailed);
}

int EstimateJob(const SubmitOptions& options) {
  const auto job = JobOf(kEstimate, options);
  if (!job) return job.error();
  const auto client = ApiClient::Connect(options.client);
  if (!client) return Complain(kEstimate, client.error(), UsageOr(client.error(), kFailed));
  const auto answer = (*client)->PostDocument("/v2/train/estimate", JsonLine(*job), {});
  if (!answer) return Complain(kEstimate, answer.error());
  if (options.json) {
    std::puts(PrettyJson(*answer).c_str());
    return kDone;
  }
  const auto text = EstimateText(*answer);
  if (!text) return Complain(kEstimate, text.error(), kFailed);
  std::fputs(text->c_str(), stdout);
  return kDone;
}

}  // namespace tandem::cli
