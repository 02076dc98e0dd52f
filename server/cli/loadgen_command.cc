#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>

#include "api/base/clock.h"
#include "api/wire/json_text.h"
#include "loadgen/arrival_text.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/rate_search.h"
#include "loadgen/report_file.h"
#include "loadgen/request_csv.h"
#include "loadgen/run.h"
#include "loadgen/run_report.h"
#include "loadgen/target.h"
#include "loadgen/trace_file.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/infer_inputs.h"
#include "server/cli/interruption.h"
#include "server/cli/loadgen_view.h"

namespace tandem::cli {
namespace {

using std::chrono::nanoseconds;

// Neither passed nor failed: too few requests, or a run that says nothing about the server.
constexpr int kUndecided = 3;

struct LoadgenOptions {
  ClientOptions client;
  std::string model;
  std::string version;
  std::string arrivals;  // Empty: poisson, or closed with users.
  std::optional<double> rate;
  std::optional<int> users;
  double duration = 10;
  double warmup = 1;
  double slo_ms = 0;
  bool send_slo = true;
  double percentile = 99;
  double confidence = 0.99;
  std::string format = "binary";
  std::vector<std::string> inputs;
  std::vector<std::string> shapes;
  std::uint32_t seed = 1;
  std::size_t connections = 1024;
  double request_timeout = 30;
  std::string json_file, csv_file, html_file;
  bool find_max = false;
  double highest = 100'000;
};

// The command line as it was typed, without secrets: it stands in reports, which people hand on.
std::string CommandLine() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::string line;
  bool secret = false;
  for (std::string word; std::getline(stream, word, '\0');) {
    const bool joined = word.starts_with("--token=");
    if (line.empty()) {
      word = "tandem";
    } else if (secret || joined) {
      word = joined ? "--token=..." : "...";
    } else if (word.find_first_of(" \t\n'\"$&|;<>()*?[]#~\\") != std::string::npos) {
      word = "'" + word + "'";
    }
    secret = word == "--token";
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

nanoseconds Seconds(double seconds) {
  return nanoseconds(std::llround(seconds * 1e9));
}

// Names the flag that a file came from.
Status OfFlag(const char* flag, const Status& status) {
  if (status) return {};
  return Fail(status.error().code, "{} {}", flag, status.error().message);
}

// What stands between the command line and the first request.
struct Prepared {
  loadgen::Target target;
  loadgen::LoadSpec spec;
  std::string server;
};

Result<std::vector<Tensor>> PrepareInputs(ApiClient& client, const LoadgenOptions& options, InferChoices& choices) {
  std::string path = "/v2/models/" + PathSegment(options.model);
  if (!options.version.empty()) path += "/versions/" + PathSegment(options.version);
  TANDEM_ASSIGN(const Json::Value metadata, client.Get(path));
  TANDEM_ASSIGN(ModelSignature signature, SignatureFromMetadata(metadata));
  // A server without that extension has no optional inputs to tell of.
  if (const auto config = client.Get(path + "/config")) MarkOptionalInputs(*config, signature);
  return MakeInputs(signature, choices, options.seed);
}

std::string ServerName(ApiClient& client) {
  const auto about = client.Get("/v2");
  if (!about || !about->isObject() || !(*about)["name"].isString()) return "";
  return (*about)["name"].asString() + ((*about)["version"].isString() ? " " + (*about)["version"].asString() : "");
}

// The rows of a trace that this run, of one model, replays.
Result<std::shared_ptr<const loadgen::TraceStream>> TraceOf(const std::string& model, const std::string& file) {
  TANDEM_ASSIGN(const loadgen::Trace trace, loadgen::ReadTraceFile(file));
  auto stream = trace.Find(model);
  if (stream == nullptr) stream = trace.Find("");
  if (stream == nullptr) return Invalid("trace '{}' has no rows for model '{}'", file, Excerpt(model));
  const auto batch = std::ranges::find_if(stream->rows, [](const loadgen::TraceRow& row) { return row.size != 1; });
  if (batch != stream->rows.end()) {
    return Invalid("trace '{}' asks for batches of {}; only batches of 1 can be replayed yet", file, batch->size);
  }
  return stream;
}

Result<loadgen::ArrivalSpec> Arrivals(const LoadgenOptions& options) {
  if (options.users && options.rate) return Invalid("--users and --rate exclude each other: a closed loop has no rate");
  const std::string kind = options.arrivals.empty() ? (options.users ? "closed" : "poisson") : options.arrivals;
  if (kind == "poisson" && !options.rate) return Invalid("say how much load: --rate, --users or --arrivals");
  TANDEM_ASSIGN(loadgen::ArrivalSpec arrivals,
                loadgen::ParseArrivals(kind, {.rate = options.rate, .users = options.users}));
  if (arrivals.kind == loadgen::ArrivalKind::kTrace) {
    TANDEM_ASSIGN(arrivals.trace, TraceOf(options.model, arrivals.trace_file));
  }
  return arrivals;
}

Result<Prepared> Prepare(const LoadgenOptions& options) {
  Prepared prepared;
  TANDEM_ASSIGN(prepared.target, loadgen::ParseTarget(options.client.url));
  TANDEM_ASSIGN(const loadgen::ArrivalSpec arrivals, Arrivals(options));
  TANDEM_ASSIGN(InferChoices choices, ParseChoices(options.inputs, options.shapes));
  TANDEM_TRY(ReadFiles(choices));
  TANDEM_ASSIGN(const auto client, ApiClient::Connect(options.client));
  TANDEM_ASSIGN(const std::vector<Tensor> inputs, PrepareInputs(*client, options, choices));
  prepared.server = ServerName(*client);

  loadgen::InferRequestOptions request{
      .host = prepared.target.host,
      .port = prepared.target.port,
      .model = options.model,
      .version = options.version,
      .form = options.format == "json" ? loadgen::InferForm::kJson : loadgen::InferForm::kBinary,
      .binary_output = options.format != "json"};
  std::optional<nanoseconds> slo;
  if (options.slo_ms > 0) slo = nanoseconds(std::llround(options.slo_ms * 1e6));
  if (slo && options.send_slo) request.headers.emplace_back("X-SLO-Ms", std::format("{}", options.slo_ms));
  if (!options.client.token.empty()) request.headers.emplace_back("Authorization", "Bearer " + options.client.token);

  loadgen::LoadSpec& spec = prepared.spec;
  spec.host = prepared.target.host;
  spec.port = prepared.target.port;
  spec.duration = Seconds(options.duration);
  spec.warmup = Seconds(options.warmup);
  spec.seed = options.seed;
  spec.connections = options.connections;
  spec.request_timeout = Seconds(options.request_timeout);
  loadgen::ModelLoad& load = spec.models.emplace_back();
  load.model = options.model;
  load.arrivals = arrivals;
  load.slo = slo;
  TANDEM_ASSIGN(load.request, loadgen::BuildInferRequest(request, inputs));
  return prepared;
}

// Nothing where the server has no metrics, or none that are known here.
loadgen::ServerMetrics ReadMetrics(const loadgen::Target& target) {
  const auto fetched = loadgen::Fetch(target, "/metrics", std::chrono::seconds(5));
  if (!fetched || fetched->status != 200) return {};
  return loadgen::ParseServerMetrics(fetched->body).value_or(loadgen::ServerMetrics{});
}

std::string Now() {
  return std::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(RealClock::Instance().WallNow()));
}

// One run from its first request to its judged report.
Result<loadgen::RunReport> RunOnce(const Prepared& prepared, const LoadgenOptions& options, Interruption& interruption,
                                   loadgen::RequestCsv* csv) {
  LoadgenView view;
  loadgen::LoadHooks hooks;
  hooks.stop = &interruption.flag();
  hooks.on_progress = [&](const loadgen::LoadProgress& progress) {
    view.Update(progress);
    // Whoever read the output has gone.
    if (std::ferror(stdout) != 0) interruption.Raise(SIGPIPE);
  };
  if (csv != nullptr) hooks.on_request = [csv](const loadgen::JudgedRequest& request) { csv->Add(request); };
  const loadgen::ServerMetrics before = ReadMetrics(prepared.target);
  TANDEM_ASSIGN(loadgen::LoadReport load, loadgen::RunLoad(prepared.spec, hooks));
  TANDEM_ASSIGN(loadgen::RunReport report, loadgen::JudgeRun(std::move(load), options.percentile, options.confidence));
  report.date = Now();
  report.command = CommandLine();
  report.url = options.client.url;
  report.server = prepared.server;
  report.server_view = loadgen::Between(before, ReadMetrics(prepared.target));
  view.EndLine();
  return report;
}

int ExitCode(const loadgen::RunReport& report) {
  switch (loadgen::ResultOf(report)) {
    case loadgen::RunResult::kPass: return kDone;
    case loadgen::RunResult::kFail: return kFailed;
    case loadgen::RunResult::kInconclusive:
    case loadgen::RunResult::kInvalid: return kUndecided;
    case loadgen::RunResult::kNone: break;
  }
  if (report.load.partial) return kUndecided;
  for (const loadgen::ModelReport& model : report.load.models) {
    if (model.counts.ok == 0 || model.counts.failed > 0) return kFailed;
  }
  return kDone;
}

Status WriteReports(const loadgen::RunReport& report, const LoadgenOptions& options) {
  if (!options.json_file.empty()) {
    TANDEM_TRY(OfFlag("--json", loadgen::WriteReportFile(options.json_file, loadgen::RunReportJson(report) + "\n")));
  }
  if (!options.html_file.empty()) {
    TANDEM_TRY(OfFlag("--html", loadgen::WriteReportFile(options.html_file, loadgen::RunReportHtml(report))));
  }
  return {};
}

Result<int> RunOneLoad(const LoadgenOptions& options, const Prepared& prepared, Interruption& interruption) {
  std::unique_ptr<loadgen::RequestCsv> csv;
  if (!options.csv_file.empty()) {
    auto created = loadgen::RequestCsv::Create(options.csv_file, {options.model});
    if (!created) return Fail(created.error().code, "--csv {}", created.error().message);
    csv = *std::move(created);
  }
  TANDEM_ASSIGN(const loadgen::RunReport report, RunOnce(prepared, options, interruption, csv.get()));
  LoadgenView().Summarize(report);
  const Status written = WriteReports(report, options);
  if (csv) TANDEM_TRY(OfFlag("--csv", csv->Close()));
  TANDEM_TRY(written);
  return ExitCode(report);
}

// The rate of the one model is what is searched for.
Result<int> FindMax(const LoadgenOptions& options, Prepared prepared, Interruption& interruption) {
  TANDEM_ASSIGN(loadgen::RateSearch search,
                loadgen::RateSearch::Create({.start = *options.rate, .highest = options.highest}));
  std::optional<loadgen::RunReport> last;
  while (const std::optional<double> rate = search.Next()) {
    std::puts(search.Describe().c_str());
    prepared.spec.models[0].arrivals.rate = *rate;
    TANDEM_ASSIGN(last, RunOnce(prepared, options, interruption, nullptr));
    if (interruption.raised()) {
      std::puts("PARTIAL: the search was stopped before its time.");
      return kUndecided;
    }
    // A rate that the generator cannot make is none that the server bears.
    const bool valid = last->problems.empty();
    for (const std::string& problem : last->problems) std::printf("  INVALID: %s\n", problem.c_str());
    std::printf("  %s\n", loadgen::VerdictText(*last->verdicts[0]).c_str());
    TANDEM_TRY(search.Observe(*rate, valid ? last->verdicts[0]->kind : loadgen::VerdictKind::kInconclusive));
  }
  std::puts(search.Describe().c_str());
  if (last) TANDEM_TRY(WriteReports(*last, options));
  switch (search.result().outcome) {
    case loadgen::RateOutcome::kConfirmed:
    case loadgen::RateOutcome::kPassesAtHighest: return kDone;
    case loadgen::RateOutcome::kFailsAtLowest: return kFailed;
    default: return kUndecided;
  }
}

Status CheckOptions(const LoadgenOptions& options) {
  for (const auto& [flag, file] :
       {std::pair{"--json", &options.json_file}, {"--csv", &options.csv_file}, {"--html", &options.html_file}}) {
    if (!file->empty()) TANDEM_TRY(OfFlag(flag, loadgen::CheckReportFile(*file)));
  }
  if (!options.find_max) return {};
  if (options.slo_ms <= 0) return Invalid("--find-max needs --slo-ms: without a bound every rate passes");
  const bool has_rate = options.arrivals.empty() || options.arrivals == "poisson" || options.arrivals == "constant";
  if (!options.rate || !has_rate) {
    return Invalid("--find-max needs --rate to begin with, and --arrivals poisson or constant");
  }
  if (!options.csv_file.empty()) return Invalid("--csv does not go with --find-max, which makes many runs");
  return {};
}

Result<int> Loadgen(const LoadgenOptions& options) {
  TANDEM_TRY(CheckOptions(options));
  ::signal(SIGPIPE, SIG_IGN);
  Interruption interruption;
  TANDEM_ASSIGN(Prepared prepared, Prepare(options));
  if (options.find_max) return FindMax(options, std::move(prepared), interruption);
  return RunOneLoad(options, prepared, interruption);
}

}  // namespace

void AddLoadgenCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("loadgen", "Send load to a server and judge whether it keeps its SLO");
  auto o = std::make_shared<LoadgenOptions>();
  command->add_option("--model", o->model, "The model to ask")->required();
  command->add_option("--model-version", o->version, "Its version; the newest by default");
  command->add_option("--rate", o->rate, "Requests per second, offered whether or not the server keeps up");
  command->add_option("--users", o->users, "A closed loop instead: so many users, each waits for its answer");
  command->add_option(
      "--arrivals", o->arrivals,
      "poisson (default), constant, bursty:…, ramp:…, steps:…, diurnal:…, trace:FILE; see docs/load-generator.md");
  command->add_option("--duration", o->duration, "Seconds that are measured")
      ->check(CLI::Range(0.1, 604800.0))
      ->capture_default_str();
  command->add_option("--warmup", o->warmup, "Seconds before that, which do not count")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command->add_option("--slo-ms", o->slo_ms, "The bound to judge by, counted from when a request was due")
      ->check(CLI::Range(0.001, 86400000.0));
  command->add_flag("--send-slo,!--no-send-slo", o->send_slo,
                    "Tell the server the SLO (header X-SLO-Ms); default: yes");
  command->add_option("--percentile", o->percentile, "Share of requests that must keep the SLO")
      ->check(CLI::Range(1.0, 99.999))
      ->capture_default_str();
  command->add_option("--confidence", o->confidence, "Of the verdict")
      ->check(CLI::Range(0.5, 0.99999))
      ->capture_default_str();
  command->add_option("--format", o->format, "Of tensors: binary or json")
      ->check(CLI::IsMember({"binary", "json"}))
      ->capture_default_str();
  command->add_option("-i,--input", o->inputs, "NAME=@FILE.npy or NAME=JSON; of the others, those needed are random");
  command->add_option("--shape", o->shapes, "NAME:D,D,…: of a random input, or of a flat list");
  command->add_option("--seed", o->seed, "Of arrivals and random inputs")->capture_default_str();
  command->add_option("--connections", o->connections, "Most connections at once; more requests wait for one")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--request-timeout", o->request_timeout, "Seconds after which a request has failed")
      ->check(CLI::Range(0.01, 86400.0))
      ->capture_default_str();
  command->add_option("--json", o->json_file, "Write the report to this file");
  command->add_option("--csv", o->csv_file, "Write every request to this file");
  command->add_option("--html", o->html_file, "Write a page with plots to this file");
  command->add_flag("--find-max", o->find_max, "Search for the highest rate that passes, beginning at --rate");
  command->add_option("--highest-rate", o->highest, "Where that search ends")->capture_default_str();
  AddClientFlags(*command, o->client);
  command->footer(
      "Exits with 0 when the run passed, 1 when it failed, 2 for a mistake on the command line, 3 when it is\n"
      "inconclusive, invalid or was interrupted.\n"
      "Examples:\n"
      "  tandem loadgen --model squeezenet --rate 30 --duration 20 --slo-ms 100 --html report.html\n"
      "  tandem loadgen --model squeezenet --users 4 --duration 5\n"
      "  tandem loadgen --model squeezenet --arrivals bursty:on=100,off=5,on_s=1,off_s=4 --slo-ms 100\n"
      "  tandem loadgen --model squeezenet --rate 20 --slo-ms 100 --find-max");
  command->callback([o, &exit_code] {
    // Each line as it comes, also in a pipe.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const Result<int> done = Loadgen(*o);
    if (!done) std::fprintf(stderr, "tandem loadgen: %s\n", done.error().message.c_str());
    exit_code = done ? *done : UsageOr(done.error(), kFailed);
  });
}

}  // namespace tandem::cli
