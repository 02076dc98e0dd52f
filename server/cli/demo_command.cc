#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

#include "api/base/clock.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/report_file.h"
#include "loadgen/run.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"
#include "server/cli/command.h"
#include "server/cli/demo_models.h"
#include "server/cli/demo_view.h"
#include "server/cli/infer_inputs.h"
#include "server/cli/interruption.h"
#include "server/lifecycle/number_range.h"
#include "server/lifecycle/server.h"
#include "server/log/log.h"

namespace tandem::cli {
namespace {

using std::chrono::nanoseconds;

// Where the package libonnx-testdata puts its models. TANDEM_ROOT is set where that package lies in another root.
std::string SamplesFolder() {
  const char* root = std::getenv("TANDEM_ROOT");
  return std::string(root == nullptr ? "" : root) + "/usr/share/libonnx-testdata/data/light";
}

struct DemoOptions {
  double seconds = 10;
  std::vector<std::string> models = {"squeezenet", "shufflenet", "resnet50"};
  std::string samples = SamplesFolder();
  std::string json_file;
  double load = 0.4;
};

// A model to be asked, and how long it takes when nobody else asks.
struct Sample {
  std::string name;
  std::vector<Tensor> inputs;
  nanoseconds alone{0};
};

double Ms(nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

Result<Sample> PrepareSample(ApiClient& client, const std::string& name) {
  TANDEM_ASSIGN(const Json::Value metadata, client.Get("/v2/models/" + loadgen::PathSegment(name)));
  TANDEM_ASSIGN(const ModelSignature signature, SignatureFromMetadata(metadata));
  Sample sample{.name = name, .inputs = {}};
  TANDEM_ASSIGN(sample.inputs, loadgen::RandomInputs(signature, {}));
  return sample;
}

// The load on one model. With an SLO, every request carries it: the server drops what it cannot answer in time.
Result<loadgen::ModelLoad> LoadOn(const Sample& sample, int port, loadgen::ArrivalSpec arrivals,
                                  std::optional<nanoseconds> slo) {
  loadgen::InferRequestOptions options{.port = port, .model = sample.name};
  if (slo) options.headers.emplace_back("X-SLO-Ms", std::format("{}", Ms(*slo)));
  loadgen::ModelLoad load{.model = sample.name, .request = {}, .arrivals = std::move(arrivals), .slo = slo};
  TANDEM_ASSIGN(load.request, loadgen::BuildInferRequest(options, sample.inputs));
  return load;
}

// A short closed loop of one user: the median is the model's own time.
Status MeasureAlone(Sample& sample, int port, const Interruption& interruption) {
  loadgen::LoadSpec spec{.port = port, .models = {}, .duration = std::chrono::milliseconds(500)};
  TANDEM_ASSIGN(spec.models.emplace_back(), LoadOn(sample, port, loadgen::ArrivalSpec::Closed(1), std::nullopt));
  TANDEM_ASSIGN(const loadgen::LoadReport report, loadgen::RunLoad(spec, {.stop = &interruption.flag()}));
  if (interruption.raised()) return {};
  if (report.models[0].counts.ok == 0) {
    const auto& failures = report.models[0].failures;
    return Fail(ErrorCode::kInternal, "model '{}' does not answer: {}", sample.name,
                failures.empty() ? "no request finished" : failures.begin()->first);
  }
  sample.alone = report.models[0].latency.Percentile(50);
  std::printf("  %-12s %6.1f ms alone\n", sample.name.c_str(), Ms(sample.alone));
  return {};
}

// Each model gets an equal share of the device's time, and an SLO that leaves room for waiting behind the others.
Result<loadgen::LoadSpec> PlanLoad(const std::vector<Sample>& samples, const DemoOptions& options, int port) {
  nanoseconds all{0};
  for (const Sample& sample : samples) all += sample.alone;
  const nanoseconds slo = std::max<nanoseconds>(std::chrono::milliseconds(50), 4 * all);
  loadgen::LoadSpec spec{.port = port, .models = {}, .duration = nanoseconds(std::llround(options.seconds * 1e9))};
  for (const Sample& sample : samples) {
    const double rate =
        options.load / static_cast<double>(samples.size()) / std::chrono::duration<double>(sample.alone).count();
    TANDEM_ASSIGN(spec.models.emplace_back(), LoadOn(sample, port, loadgen::ArrivalSpec::Poisson(rate), slo));
  }
  return spec;
}

int Verdict(const loadgen::LoadReport& report) {
  std::uint64_t failed = 0;
  std::uint64_t offered = 0;
  std::uint64_t answered = 0;
  double in_time = 0;
  for (const loadgen::ModelReport& m : report.models) {
    failed += m.counts.failed;
    offered += m.scheduled;
    answered += m.counts.ok + m.counts.late;
    in_time += m.attainment * static_cast<double>(m.scheduled);
  }
  const double attainment = offered == 0 ? 0 : in_time / static_cast<double>(offered);
  std::printf("%s%.2f %% of %llu requests answered within their SLO, %llu failed.\n",
              report.partial ? "Interrupted. " : "", 100 * attainment, static_cast<unsigned long long>(offered),
              static_cast<unsigned long long>(failed));
  return failed == 0 && answered > 0 ? kDone : kFailed;
}

// On a thread of its own, so that a signal is heard meanwhile. Then the rest is not loaded.
Status LoadModels(Server& server, const Interruption& interruption) {
  auto loaded = std::async(std::launch::async, [&server] { return server.LoadModels(); });
  while (loaded.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
    if (!interruption.raised()) continue;
    server.BeginDrain();
    (void)loaded.get();
    return {};
  }
  return loaded.get();
}

// Names the flag that a file came from.
Status OfJsonFlag(const Status& status) {
  if (status) return {};
  return Fail(status.error().code, "--json {}", status.error().message);
}

int Interrupted(const Interruption& interruption, const char* when) {
  std::fprintf(stderr, "tandem demo: interrupted %s\n", when);
  return interruption.exit_code();
}

Result<int> RunDemo(const DemoOptions& options, const ScratchFolder& scratch, Interruption& interruption) {
  const MonotonicTime start = RealClock::Instance().Now();
  TANDEM_TRY(LayOutSamples(options.samples, options.models, scratch.path()));
  ServeOptions serve;
  serve.model_repository = {scratch.path().string()};
  serve.http_port = serve.grpc_port = serve.metrics_port = 0;
  serve.exit_on_error = true;
  serve.allow_training = false;
  TANDEM_ASSIGN(const std::unique_ptr<Server> server, Server::Start(serve));
  TANDEM_TRY(LoadModels(*server, interruption));
  if (interruption.raised()) return Interrupted(interruption, "while the models were loading");
  const int port = server->ports().http;
  const std::chrono::duration<double> ready = RealClock::Instance().Now() - start;
  std::printf("Serving %zu model%s after %.1f s: REST on 127.0.0.1:%d, gRPC on 127.0.0.1:%d, metrics on 127.0.0.1:%d\n",
              options.models.size(), options.models.size() == 1 ? "" : "s", ready.count(), port, server->ports().grpc,
              server->ports().metrics);

  TANDEM_ASSIGN(const auto client, ApiClient::Connect({.url = std::format("http://127.0.0.1:{}", port)}));
  std::vector<Sample> samples;
  for (const std::string& name : options.models) {
    TANDEM_ASSIGN(samples.emplace_back(), PrepareSample(*client, name));
    TANDEM_TRY(MeasureAlone(samples.back(), port, interruption));
    if (interruption.raised()) return Interrupted(interruption, "before the load began");
  }
  TANDEM_ASSIGN(const loadgen::LoadSpec spec, PlanLoad(samples, options, port));
  std::printf("Poisson arrivals for %.0f s at %.0f %% of the device's time; SLO %.0f ms\n", options.seconds,
              100 * options.load, Ms(*spec.models[0].slo));
  DemoView view(options.models);
  const auto show = [&](const loadgen::LoadProgress& progress) {
    view.Update(progress);
    // Whoever read the output has gone.
    if (std::ferror(stdout) != 0) interruption.Raise(SIGPIPE);
  };
  TANDEM_ASSIGN(const loadgen::LoadReport report,
                loadgen::RunLoad(spec, {.on_progress = show, .stop = &interruption.flag()}));
  view.Summarize(report);
  if (!options.json_file.empty()) {
    TANDEM_TRY(OfJsonFlag(loadgen::WriteReportFile(options.json_file, loadgen::LoadReportJson(report) + "\n")));
  }
  const int verdict = Verdict(report);
  return interruption.raised() ? interruption.exit_code() : verdict;
}

Result<int> Demo(const DemoOptions& options) {
  if (!options.json_file.empty()) TANDEM_TRY(OfJsonFlag(loadgen::CheckReportFile(options.json_file)));
  ::signal(SIGPIPE, SIG_IGN);
  Interruption interruption;
  TANDEM_ASSIGN(const ScratchFolder scratch, ScratchFolder::Create());
  interruption.BeforeLeavingAtOnce([path = scratch.path()] {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  });
  return RunDemo(options, scratch, interruption);
}

}  // namespace

void AddDemoCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("demo", "Serve sample models, send them load, and show how they do");
  auto o = std::make_shared<DemoOptions>();
  command->add_option("--seconds", o->seconds, "How long to send load")
      ->check(Between(1, 86400))
      ->capture_default_str();
  command->add_option("--models", o->models, "Which of the sample models")->delimiter(',')->capture_default_str();
  command->add_option("--load", o->load, "Share of the device's time to ask for")
      ->check(Between(0.01, 10))
      ->capture_default_str();
  command->add_option("--samples", o->samples, "Folder of the sample models")->capture_default_str();
  command->add_option("--json", o->json_file, "Write the report to this file");
  command->footer(
      "Exits with 1 when a request failed or none was answered.\n"
      "Examples:\n  tandem demo\n  tandem demo --seconds 30 --models squeezenet,densenet121 --json report.json");
  command->callback([o, &exit_code] {
    SetUpLog(LogLevel::kWarning, LogFormat::kText);
    // Each line as it comes, also in a pipe.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const Result<int> done = Demo(*o);
    FlushLog();
    if (!done) std::fprintf(stderr, "tandem demo: %s\n", done.error().message.c_str());
    exit_code = done.value_or(kFailed);
  });
}

}  // namespace tandem::cli
