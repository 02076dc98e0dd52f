#include "server/cli/train_submit.h"

#include <algorithm>
#include <cstdio>
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

int Complain(const Error& error, int exit_code) {
  std::fprintf(stderr, "tandem train submit: %s\n", PrintableLines(error.message).c_str());
  return exit_code;
}

int Complain(const Refusal& refusal) {
  if (refusal.problems.empty()) return Complain(refusal.error, kFailed);
  const std::size_t count = refusal.problems.size();
  std::fprintf(stderr, "tandem train submit: the job was refused, for %zu problem%s:\n%s", count, count == 1 ? "" : "s",
               ProblemLines(refusal.problems).c_str());
  return kFailed;
}

Status CheckUsage(const SubmitOptions& options) {
  if (options.file.empty() && !(options.flags.model && options.flags.data)) {
    return Invalid("give a job file, or --model and --data; see tandem train submit --help");
  }
  if (std::ranges::any_of(options.idempotency_key, [](char c) { return c < ' ' || c > '~'; })) {
    return Invalid("--idempotency-key: a key has printable ASCII characters only");
  }
  return {};
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
  if (const Status usable = CheckUsage(options); !usable) return Complain(usable.error(), kUsage);
  Json::Value document;
  if (!options.file.empty()) {
    auto read = ReadJsonFile(options.file);
    if (!read) return Complain(read.error(), kFailed);
    document = *std::move(read);
  }
  const auto job = LayOverJob(std::move(document), options.flags);
  if (!job) return Complain(job.error(), kUsage);
  // Before the job is sent: whoever interrupts from here on is told which job goes on.
  std::optional<Interruption> interruption;
  if (options.watch) {
    ::signal(SIGPIPE, SIG_IGN);
    interruption.emplace();
  }
  const auto client = ApiClient::Connect(options.client);
  if (!client) return Complain(client.error(), UsageOr(client.error(), kFailed));
  HttpHeaders headers;
  if (!options.idempotency_key.empty()) headers.emplace_back("Idempotency-Key", options.idempotency_key);
  const auto answer = (*client)->PostDocument(kJobs, JsonLine(*job), headers);
  if (!answer) return Complain(answer.error());
  const auto view = ReadJobView(*answer);
  if (!view) return Complain(view.error(), kFailed);
  if (options.json && !options.watch) std::puts(PrettyJson(*answer).c_str());
  if (!options.json)
    std::printf("job %lld (%s) is %s\n", static_cast<long long>(view->id), view->name.c_str(), view->state.c_str());
  if (!options.watch) return kDone;
  const auto watched = Watch(**client, *view, options, *interruption);
  return watched ? *watched : Complain(watched.error(), kFailed);
}

}  // namespace tandem::cli
