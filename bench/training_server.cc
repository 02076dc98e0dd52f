#include "bench/training_server.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/training_job_json.h"
#include "bench/bare_session.h"
#include "bench/load_window.h"
#include "bench/training/network_job.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/metrics_watch.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kPatience = 60s;
constexpr auto kPoll = 20ms;
constexpr double kFirstSteps = 3;
// To know what one request takes.
constexpr auto kLongEnough = 3s;

// What the server knows it by: it may serve another of the same name.
std::string TrainedName(const std::string& network) {
  return "trained-" + network;
}

// A repository with what is trained.
Result<fs::path> TrainedRepository(const BenchContext& context, const std::string& network) {
  TANDEM_ASSIGN(const fs::path folder, SetupFolder(context, network));
  fs::path repository = context.work / "repository-of-trained" / network;
  const fs::path version = repository / TrainedName(network) / "1";
  std::error_code error;
  fs::create_directories(version, error);
  if (!error) fs::copy_file(folder / kModelFile, version / "model.onnx", fs::copy_options::skip_existing, error);
  if (error) return Fail(ErrorCode::kInternal, "'{}' cannot be filled: {}", version.string(), error.message());
  return repository;
}

// Beyond the first model, which whoever starts the server names.
Result<std::vector<std::string>> Flags(const BenchContext& context, const TrainingServerSpec& spec) {
  std::vector<std::string> flags = {"--colocation", spec.policy,           "--data-root",
                                    context.work,   "--max-training-jobs", std::to_string(spec.trains.size())};
  for (std::size_t i = 1; i < spec.models.size(); ++i) {
    TANDEM_ASSIGN(const fs::path file, ModelFile(context, spec.models[i]));
    flags.insert(flags.end(), {"--model-repository", file.parent_path().parent_path().parent_path()});
  }
  for (const TrainedNetwork& trained : spec.trains) {
    TANDEM_ASSIGN(const fs::path repository, TrainedRepository(context, trained.network));
    flags.insert(flags.end(), {"--model-repository", repository});
  }
  return flags;
}

}  // namespace

double StepsBetween(const OpCounts& before, const OpCounts& after) {
  double done = 0;
  double step = 0;
  for (const auto& [name, op] : after) {
    const auto then = before.find(name);
    done += op.typical * (op.runs - (then == before.end() ? 0 : then->second.runs)) / op.ops;
    step += op.typical;
  }
  return step > 0 ? done / step : 0;
}

TrainingSpan Between(const TrainingMarks& before, const TrainingMarks& after) {
  TrainingSpan span;
  span.seconds = Seconds(after.at - before.at);
  for (std::size_t i = 0; i < after.ops.size(); ++i) {
    span.rates.push_back(StepsBetween(before.ops.at(i), after.ops[i]) / span.seconds);
  }
  span.cores = (after.cpu - before.cpu) / span.seconds;
  span.periods = after.periods - before.periods;
  span.throttled = after.throttled - before.throttled;
  span.acknowledged = loadgen::PercentileBound(before.acknowledgements, after.acknowledgements, 99);
  // A server may begin to tell with the first of them.
  if (after.missed_by_training)
    span.missed_by_training = *after.missed_by_training - before.missed_by_training.value_or(0);
  return span;
}

Result<ServedModel> PrepareModel(BenchContext& context, const std::string& model) {
  TANDEM_ASSIGN(const auto bare, LoadBare(context, model, BareThreads::kShared));
  TANDEM_ASSIGN(auto inputs, loadgen::RandomInputs(bare->signature(), {.seed = 1}));
  return ServedModel{.model = model, .inputs = std::move(inputs)};
}

Result<std::unique_ptr<TrainingServer>> TrainingServer::Start(const BenchContext& context,
                                                              const TrainingServerSpec& spec) {
  std::unique_ptr<TrainingServer> made(new TrainingServer(context));
  TANDEM_ASSIGN(auto flags, Flags(context, spec));
  if (spec.quota > 0) {
    TANDEM_ASSIGN(made->group_, CpuGroup::Make(spec.quota));
    TANDEM_ASSIGN(made->server_, StartServerIn(context, spec.models.front(), made->group_->doors(), std::move(flags)));
  } else {
    TANDEM_ASSIGN(made->server_, StartServer(context, spec.models.front(), std::move(flags)));
  }
  TANDEM_ASSIGN(made->client_, cli::ApiClient::Connect({.url = Format("http://127.0.0.1:{}", made->port())}));
  for (const TrainedNetwork& trained : spec.trains) TANDEM_TRY(made->Submit(trained));
  return made;
}

Status TrainingServer::Submit(const TrainedNetwork& trained) {
  TANDEM_ASSIGN(const Network network, FindNetwork(trained.network));
  TANDEM_ASSIGN(const fs::path folder, SetupFolder(context_, trained.network));
  TrainingJob wanted = NetworkJob(network, trained.batch);
  wanted.model = TrainedName(network.name);
  wanted.data.path = folder.filename() / kDataFile;
  TANDEM_ASSIGN(const Json::Value job, client_->Post("/v2/train/jobs", JsonLine(TrainingJobToJson(wanted))));
  jobs_.push_back(job["id"].asString());
  const MonotonicTime until = RealClock::Instance().Now() + kPatience;
  for (double steps = 0; steps < kFirstSteps;) {
    TANDEM_ASSIGN(steps, StepsOf(jobs_.back()));
    if (RealClock::Instance().Now() > until) return Fail(ErrorCode::kInternal, "waited in vain for a job's steps");
    std::this_thread::sleep_for(kPoll);
  }
  TANDEM_TRY(client_->Post(Format("/v2/train/jobs/{}/pause", jobs_.back()), ""));
  return {};
}

Status TrainingServer::Tell(const char* what) const {
  for (const std::string& job : jobs_) TANDEM_TRY(client_->Post(Format("/v2/train/jobs/{}/{}", job, what), ""));
  return {};
}

Result<double> TrainingServer::StepsOf(const std::string& job) const {
  TANDEM_ASSIGN(auto metrics, Metrics());
  return metrics.jobs[job].iterations;
}

Result<OpCounts> TrainingServer::CountOps(const std::string& job) const {
  TANDEM_ASSIGN(const Json::Value profile, client_->Get(Format("/v2/train/jobs/{}/profile", job)));
  OpCounts counts;
  for (const Json::Value& op : profile["ops"]) {
    OpCount& count = counts[Format("{} {}", op["kind"].asString(), op["name"].asString())];
    ++count.ops;
    count.runs += op["count"].asDouble();
    count.typical += op["typical_ms"].asDouble();
  }
  return counts;
}

Result<loadgen::ServerMetrics> TrainingServer::Metrics() const {
  const loadgen::MetricsSource source{.target = {.host = "127.0.0.1", .port = port()}, .tls = {}, .token = ""};
  return loadgen::ReadServerMetrics(source, kPatience);
}

Result<TrainingMarks> TrainingServer::Look() const {
  TANDEM_ASSIGN(auto metrics, Metrics());
  TrainingMarks marks;
  for (const std::string& job : jobs_) {
    TANDEM_ASSIGN(marks.ops.emplace_back(), CountOps(job));
  }
  marks.at = RealClock::Instance().Now();
  marks.acknowledgements = std::move(metrics.acknowledgements);
  marks.missed_by_training = metrics.missed_by_training;
  TANDEM_ASSIGN(marks.cpu, server_->CpuSeconds());
  if (group_) {
    std::ifstream stat(group_->doors().front().parent_path() / "cpu.stat");
    std::string name;
    for (double value = 0; stat >> name >> value;) {
      if (name == "nr_periods") marks.periods = value;
      if (name == "nr_throttled") marks.throttled = value;
    }
  }
  return marks;
}

Result<loadgen::HttpRequest> TrainingServer::Request(const ServedModel& model,
                                                     std::optional<std::chrono::nanoseconds> slo) const {
  loadgen::InferRequestOptions options{.port = port(), .model = ModelName(model.model)};
  if (slo) options.headers.emplace_back("X-SLO-Ms", Format("{:.3f}", Ms(*slo)));
  return loadgen::BuildInferRequest(options, model.inputs);
}

Result<double> TrainingServer::CpuPerRequest(const ServedModel& model) const {
  Pace pace = context_.pace;
  pace.window = std::min<std::chrono::nanoseconds>(pace.window, kLongEnough);
  TANDEM_ASSIGN(const auto request, Request(model));
  TANDEM_ASSIGN(const double before, server_->CpuSeconds());
  TANDEM_ASSIGN(const auto report, HttpWindow(pace, port(), request, 1));
  TANDEM_ASSIGN(const double after, server_->CpuSeconds());
  // Those of the warm-up are in the use, too.
  const double share = Seconds(pace.window) / Seconds(pace.window + pace.warmup);
  return (after - before) * share / static_cast<double>(report.latency.count());
}

}  // namespace tandem::bench
