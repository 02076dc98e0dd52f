#include "server/cli/loadgen_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <format>
#include <fstream>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <signal.h>

#include "api/base/clock.h"
#include "api/wire/json_text.h"
#include "loadgen/arrival_text.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/server_metrics.h"
#include "loadgen/trace_file.h"
#include "server/cli/infer_inputs.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

using std::chrono::nanoseconds;

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

// Nothing where the server has no metrics, or none that are known here.
loadgen::ServerMetrics ReadMetrics(const loadgen::Target& target) {
  const auto fetched = loadgen::Fetch(target, "/metrics", std::chrono::seconds(5));
  if (!fetched || fetched->status != 200) return {};
  return loadgen::ParseServerMetrics(fetched->body).value_or(loadgen::ServerMetrics{});
}

std::string Now() {
  return std::format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(RealClock::Instance().WallNow()));
}

}  // namespace

void AddLoadFlags(CLI::App& command, LoadgenOptions& o) {
  command.add_option("--model", o.model, "The model to ask");
  command.add_option("--model-version", o.version, "Its version; the newest by default");
  command.add_option("--rate", o.rate, "Requests per second, offered whether or not the server keeps up");
  command.add_option("--users", o.users, "A closed loop instead: so many users, each waits for its answer");
  command.add_option(
      "--arrivals", o.arrivals,
      "poisson (default), constant, bursty:…, ramp:…, steps:…, diurnal:…, trace:FILE; see docs/load-generator.md");
  command.add_option("--duration", o.duration, "Seconds that are measured")
      ->check(Between(0.1, 604800.0))
      ->capture_default_str();
  command.add_option("--warmup", o.warmup, "Seconds before that, which do not count")
      ->check(Between(0.0, 86400.0))
      ->capture_default_str();
  command.add_option("--slo-ms", o.slo_ms, "The bound to judge by, counted from when a request was due")
      ->check(Between(0.001, 86400000.0));
  command.add_flag("--send-slo,!--no-send-slo", o.send_slo, "Tell the server the SLO (header X-SLO-Ms); default: yes");
  command.add_option("--percentile", o.percentile, "Share of requests that must keep the SLO")
      ->check(Between(1.0, 99.999))
      ->capture_default_str();
  command.add_option("--confidence", o.confidence, "Of the verdict")
      ->check(Between(0.5, 0.99999))
      ->capture_default_str();
  command.add_option("--format", o.format, "Of tensors: binary or json")
      ->check(CLI::IsMember({"binary", "json"}))
      ->capture_default_str();
  command.add_option("-i,--input", o.inputs, "NAME=@FILE.npy or NAME=JSON; of the others, those needed are random");
  command.add_option("--shape", o.shapes, "NAME:D,D,…: of a random input, or of a flat list");
  command.add_option("--seed", o.seed, "Of arrivals and random inputs")->capture_default_str();
  command.add_option("--connections", o.connections, "Most connections at once; more requests wait for one")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command.add_option("--request-timeout", o.request_timeout, "Seconds after which a request has failed")
      ->check(Between(0.01, 86400.0))
      ->capture_default_str();
  AddClientFlags(command, o.client);
}

Result<PreparedLoad> PrepareLoad(const LoadgenOptions& options) {
  if (options.model.empty()) return Invalid("--model is required");
  PreparedLoad prepared;
  TANDEM_ASSIGN(prepared.target, loadgen::ParseTarget(options.client.url));
  TANDEM_ASSIGN(const loadgen::ArrivalSpec arrivals, Arrivals(options));
  TANDEM_ASSIGN(InferChoices choices, ParseChoices(options.inputs, options.shapes));
  TANDEM_TRY(ReadFiles(choices));
  TANDEM_ASSIGN(const auto client, ApiClient::Connect(options.client));
  TANDEM_ASSIGN(const DescribedModel model, DescribeModel(*client, options.model, options.version));
  TANDEM_ASSIGN(const std::vector<Tensor> inputs, MakeInputs(model.signature, choices, options.seed));
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

Result<loadgen::RunReport> RunPrepared(const PreparedLoad& prepared, const LoadgenOptions& options,
                                       Interruption& interruption, LoadgenView& view, loadgen::RequestCsv* csv) {
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

}  // namespace tandem::cli
