#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <signal.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/interruption.h"
#include "server/cli/pretty_json.h"
#include "server/cli/train_fetch.h"
#include "server/cli/train_follow.h"
#include "server/cli/train_progress.h"
#include "server/cli/train_submit.h"
#include "server/cli/train_text.h"
#include "server/cli/train_turns.h"
#include "server/cli/train_watch.h"

namespace tandem::cli {
namespace {

constexpr int kPlotRows = 12;
constexpr int kPlotColumns = 64;

struct TrainOptions {
  ClientOptions client;
  std::int64_t job = 0;  // 0: none was named.
  std::string states;
  std::string owner;
  int limit = 50;
  std::int64_t before = 0;
  std::string plot;
  std::string output;
  std::string policy;
  bool follow = false;
  bool json = false;
};

using Action = std::function<Result<int>(ApiClient&, const TrainOptions&)>;

std::string PathOf(const TrainOptions& options, const char* what = "") {
  return Format("/v2/train/jobs/{}{}", options.job, what);
}

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

// An answer as JSON, or as the text that `form` makes of it.
Result<int> Show(const Json::Value& answer, bool json, Result<std::string> (*form)(const Json::Value&)) {
  if (json) {
    Print(PrettyJson(answer) + "\n");
    return kDone;
  }
  TANDEM_ASSIGN(const std::string text, form(answer));
  Print(text);
  return kDone;
}

Result<int> List(ApiClient& client, const TrainOptions& options) {
  std::string path = Format("/v2/train/jobs?limit={}", options.limit);
  if (!options.states.empty()) path += "&state=" + loadgen::PathSegment(options.states);
  if (!options.owner.empty()) path += "&owner=" + loadgen::PathSegment(options.owner);
  if (options.before > 0) path += Format("&before={}", options.before);
  TANDEM_ASSIGN(const Json::Value page, client.Get(path));
  TANDEM_ASSIGN(const int done, Show(page, options.json, JobTable));
  if (!options.json && page["next"].isString()) {
    std::fprintf(stderr, "older jobs: --before %s\n", Excerpt(page["next"].asString()).c_str());
  }
  return done;
}

Result<int> ShowJob(ApiClient& client, const TrainOptions& options) {
  TANDEM_ASSIGN(const Json::Value job, client.Get(PathOf(options)));
  return Show(job, options.json, JobText);
}

Result<int> Checkpoints(ApiClient& client, const TrainOptions& options) {
  TANDEM_ASSIGN(const Json::Value answer, client.Get(PathOf(options, "/checkpoints")));
  return Show(answer, options.json, CheckpointTable);
}

Result<int> Metrics(ApiClient& client, const TrainOptions& options) {
  TANDEM_ASSIGN(const Json::Value answer, client.Get(PathOf(options, "/metrics")));
  if (options.json || options.plot.empty()) return Show(answer, options.json, SeriesTable);
  TANDEM_ASSIGN(const std::string plot, SeriesPlot(answer, options.plot, kPlotRows, kPlotColumns));
  Print(plot);
  return kDone;
}

// What became of the job, in a sentence.
std::string AfterControl(const std::string& what, const JobView& job) {
  if (what == "publish") {
    return Format("job {} is published as version {} of {}", job.id, job.published_version, job.model);
  }
  if (what == "rollback") return Format("job {} is rolled back; {} is served as before", job.id, job.model);
  return Format("job {} is {}", job.id, job.state);
}

Action Control(const char* what) {
  return [what = std::string(what)](ApiClient& client, const TrainOptions& options) -> Result<int> {
    TANDEM_ASSIGN(const Json::Value answer, client.Post(PathOf(options, ("/" + what).c_str()), ""));
    TANDEM_ASSIGN(const JobView job, ReadJobView(answer));
    Print((options.json ? PrettyJson(answer) : AfterControl(what, job)) + "\n");
    return kDone;
  };
}

Result<int> Delete(ApiClient& client, const TrainOptions& options) {
  TANDEM_ASSIGN(const Json::Value answer, client.Delete(PathOf(options)));
  Print(options.json ? PrettyJson(answer) + "\n" : Format("job {} is deleted\n", options.job));
  return kDone;
}

Result<int> Fetch(ApiClient& client, const TrainOptions& options) {
  const std::string file = options.output.empty() ? Format("job-{}.onnx", options.job) : options.output;
  TANDEM_ASSIGN(const std::uint64_t bytes, FetchModel(client, options.job, file));
  // Standard output may be where the model went.
  std::fprintf(stderr, "%s: the trained model of job %lld, %llu bytes\n", file.c_str(),
               static_cast<long long>(options.job), static_cast<unsigned long long>(bytes));
  return kDone;
}

Result<int> Turns(ApiClient& client, const TrainOptions& options) {
  constexpr const char* kPath = "/v2/train/turns";
  Json::Value change(Json::objectValue);
  change["policy"] = options.policy;
  TANDEM_ASSIGN(const Json::Value answer,
                options.policy.empty() ? client.Get(kPath) : client.Post(kPath, JsonLine(change)));
  return Show(answer, options.json, TurnsText);
}

Result<int> Logs(ApiClient& client, const TrainOptions& options) {
  TANDEM_TRY(PrintLog(client, options.job, options.follow));
  return kDone;
}

Result<int> Events(ApiClient& client, const TrainOptions& options) {
  TANDEM_TRY(PrintEvents(client, {.job = options.job > 0 ? std::optional(options.job) : std::nullopt,
                                  .follow = options.follow,
                                  .json = options.json}));
  return kDone;
}

Result<int> Watch(ApiClient& client, const TrainOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  const Interruption interruption;
  TANDEM_ASSIGN(const int exit_code, WatchJob(client, options.job, options.json, interruption));
  if (!options.json || interruption.raised()) return exit_code;
  TANDEM_TRY(ShowJob(client, options));
  return exit_code;
}

int Complain(const char* command, const Error& error, int exit_code) {
  std::fprintf(stderr, "tandem train %s: %s\n", command, PrintableLines(error.message).c_str());
  return exit_code;
}

int Run(const char* name, const TrainOptions& options, const Action& action) try {
  const auto client = ApiClient::Connect(options.client);
  if (!client) return Complain(name, client.error(), UsageOr(client.error(), kFailed));
  const Result<int> done = action(**client, options);
  return done ? *done : Complain(name, done.error(), kFailed);
} catch (const Json::Exception&) {
  // An answer of another form than asked for.
  return Complain(
      name, {ErrorCode::kInternal, "the server's answer is not what a tandem server gives; is --url right?"}, kFailed);
}

enum class Names : std::uint8_t { kNoJob, kJob, kMaybeJob };

// One subcommand of `train`, before what is its own.
struct Added {
  CLI::App* command;
  std::shared_ptr<TrainOptions> options;  // Shared with the callback, which lives as long as the command.
};

Added Add(CLI::App& train, int& exit_code, const char* name, const char* help, const char* examples, Names names,
          Action action) {
  CLI::App* command = train.add_subcommand(name, help);
  auto options = std::make_shared<TrainOptions>();
  if (names != Names::kNoJob) {
    CLI::Option* job = command->add_option("job", options->job, "The number of the job")->check(CLI::PositiveNumber);
    if (names == Names::kJob) job->required();
  }
  AddClientFlags(*command, options->client);
  command->footer(std::string("Examples:\n") + examples);
  command->callback(
      [name, options, action = std::move(action), &exit_code] { exit_code = Run(name, *options, action); });
  return {command, options};
}

void AddJsonFlag(const Added& added, const char* help = "Print JSON") {
  added.command->add_flag("--json", added.options->json, help);
}

void AddSubmit(CLI::App& train, int& exit_code) {
  CLI::App* command = train.add_subcommand("submit", "Submit a job: a file, flags, or a file that flags change");
  auto o = std::make_shared<SubmitOptions>();
  command->add_option("file", o->file, "The job as JSON; docs/training-jobs.md describes every field");
  AddJobFlags(*command, o->flags);
  command->add_option("--idempotency-key", o->idempotency_key,
                      "The same key with the same job gives the job that is there already");
  command->add_flag("--watch", o->watch, "Show progress until the job has ended; Ctrl-C leaves it running");
  command->add_flag("--json", o->json, "Print the job as JSON; with --watch once it has ended");
  AddClientFlags(*command, o->client);
  command->footer(
      "Exit code with --watch: 0 when the job succeeded, 1 when it failed or was cancelled.\n"
      "Examples:\n"
      "  tandem train submit --model digits --data digits.npz --epochs 3 --watch\n"
      "  tandem train submit job.json\n"
      "  tandem train submit job.json --lr 0.0003 --name slower --idempotency-key nightly-7\n"
      "  tandem train submit --model digits --data d.npz --epochs 9 --eval-split 0.1 --publish if_better");
  command->callback([o, &exit_code] { exit_code = SubmitJob(*o); });
}

void AddEstimate(CLI::App& train, int& exit_code) {
  CLI::App* command = train.add_subcommand("estimate", "Say what a job would take of memory, without submitting it");
  auto o = std::make_shared<SubmitOptions>();
  command->add_option("file", o->file, "The job as JSON; docs/training-jobs.md describes every field");
  AddJobFlags(*command, o->flags);
  command->add_flag("--json", o->json, "Print JSON");
  AddClientFlags(*command, o->client);
  command->footer(
      "Examples:\n"
      "  tandem train estimate --model digits --data digits.npz --epochs 3\n"
      "  tandem train estimate job.json --batch-size 64 --json");
  command->callback([o, &exit_code] { exit_code = EstimateJob(*o); });
}

void AddListings(CLI::App& train, int& exit_code) {
  const Added list =
      Add(train, exit_code, "list", "Jobs, the newest first",
          "  tandem train list\n  tandem train list --state running,queued --limit 10 --json", Names::kNoJob, List);
  list.command->add_option("--state", list.options->states,
                           "Only these: queued, admitted, running, paused, succeeded, failed, cancelled");
  list.command->add_option("--owner", list.options->owner, "Only those that the token of this name submitted");
  list.command->add_option("--limit", list.options->limit, "At most so many")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  list.command->add_option("--before", list.options->before, "Only jobs that are older than this one")
      ->check(CLI::PositiveNumber);
  AddJsonFlag(list);
  AddJsonFlag(Add(train, exit_code, "show", "One job: its state, its progress and what was submitted",
                  "  tandem train show 7\n  tandem train show 7 --json", Names::kJob, ShowJob));
  AddJsonFlag(Add(train, exit_code, "checkpoints", "The checkpoints that are kept of a job",
                  "  tandem train checkpoints 7\n  tandem train checkpoints 7 --json", Names::kJob, Checkpoints));
  const Added metrics = Add(train, exit_code, "metrics", "Loss, learning rate and evaluation of a job over its steps",
                            "  tandem train metrics 7\n  tandem train metrics 7 --plot\n"
                            "  tandem train metrics 7 --plot accuracy\n  tandem train metrics 7 --json",
                            Names::kJob, Metrics);
  metrics.command->add_option("--plot", metrics.options->plot, "Draw this series; the loss by default")
      ->expected(0, 1)
      ->default_str("loss");
  AddJsonFlag(metrics, "Print every point as JSON");
  const Added fetch = Add(train, exit_code, "fetch", "The trained model of a job that has succeeded, as an ONNX file",
                          "  tandem train fetch 7\n  tandem train fetch 7 -o digits.onnx", Names::kJob, Fetch);
  fetch.command->add_option("-o,--output", fetch.options->output, "Where to; job-ID.onnx here by default");
  const Added turns = Add(train, exit_code, "turns", "Whose iteration is next, by which policy; or change that",
                          "  tandem train turns\n  tandem train turns --policy srtf --json", Names::kNoJob, Turns);
  turns.command->add_option("--policy", turns.options->policy,
                            "From now on: fifo, pack, srtf, fair, fair_memory or priority");
  AddJsonFlag(turns);
}

void AddFollowers(CLI::App& train, int& exit_code) {
  const Added logs = Add(train, exit_code, "logs", "What the trainers of a job have written",
                         "  tandem train logs 7\n  tandem train logs 7 --follow", Names::kJob, Logs);
  logs.command->add_flag("-f,--follow", logs.options->follow, "Go on until the job has ended");
  const Added events = Add(train, exit_code, "events", "What happened to a job, or to all",
                           "  tandem train events 7\n  tandem train events --follow\n"
                           "  tandem train events 7 --follow --json      (one object a line)",
                           Names::kMaybeJob, Events);
  events.command->add_flag("-f,--follow", events.options->follow, "Go on until the job has ended; all: for ever");
  AddJsonFlag(events, "Print one JSON object a line");
  AddJsonFlag(Add(train, exit_code, "watch", "Show a job's progress until it has ended; Ctrl-C leaves it running",
                  "  tandem train watch 7\n  tandem train watch 7 && echo succeeded\n"
                  "  tandem train watch 7 --json      (nothing but the job, once it has ended)",
                  Names::kJob, Watch),
              "Print the job as JSON once it has ended");
}

void AddControls(CLI::App& train, int& exit_code) {
  const auto add = [&](const char* name, const char* help, Action action) {
    const std::string examples = Format("  tandem train {} 7\n  tandem train {} 7 --json", name, name);
    AddJsonFlag(Add(train, exit_code, name, help, examples.c_str(), Names::kJob, std::move(action)),
                "Print the job as JSON");
  };
  add("pause", "Hold a job until it is resumed", Control("pause"));
  add("resume", "Let a paused job go on", Control("resume"));
  add("cancel", "End a job; what it has learnt stays in its checkpoints", Control("cancel"));
  add("publish", "Serve the result of a job as its model's next version", Control("publish"));
  add("rollback", "Take the published version of a job back", Control("rollback"));
  add("delete", "Remove a job that has ended, with its checkpoints and logs", Delete);
}

}  // namespace

void AddTrainCommand(CLI::App& app, int& exit_code) {
  CLI::App* train = app.add_subcommand("train", "Submit, watch and control the training jobs of a running server");
  train->require_subcommand(1);
  train->footer(
      "Examples:\n"
      "  tandem train submit --model digits --data digits.npz --epochs 3 --watch\n"
      "  tandem train list --state running,queued\n"
      "  tandem train logs 7 --follow\n"
      "  tandem train publish 7");
  AddSubmit(*train, exit_code);
  AddEstimate(*train, exit_code);
  AddListings(*train, exit_code);
  AddFollowers(*train, exit_code);
  AddControls(*train, exit_code);
}

}  // namespace tandem::cli
