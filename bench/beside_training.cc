#include "bench/beside_training.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "api/base/clock.h"
#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/training_job_json.h"
#include "bench/bare_session.h"
#include "bench/cpu_group.h"
#include "bench/interleave.h"
#include "bench/load_window.h"
#include "bench/training/network_job.h"
#include "bench/training_side.h"
#include "colocation/policy.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/metrics_watch.h"
#include "loadgen/run.h"
#include "server/cli/api_client.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr auto kPoll = 20ms;
// What trains alone to compare with.
const std::string kSimple = "idle";

struct Spec {
  std::string model;
  TrainedNetwork trains;
  double load = 0;
  int windows = 1;
  double quota = 0;
  std::vector<std::string> policies;
};

// What the server knows it by: it may serve another of the same name.
std::string TrainedName(const std::string& network) {
  return "trained-" + network;
}

// A repository with what is trained.
Result<std::filesystem::path> TrainedRepository(const BenchContext& context, const std::string& network) {
  TANDEM_ASSIGN(const std::filesystem::path folder, SetupFolder(context, network));
  std::filesystem::path repository = context.work / "repository-of-trained" / network;
  const std::filesystem::path version = repository / TrainedName(network) / "1";
  std::error_code error;
  std::filesystem::create_directories(version, error);
  if (!error) {
    std::filesystem::copy_file(folder / kModelFile, version / "model.onnx",
                               std::filesystem::copy_options::skip_existing, error);
  }
  if (error) return Fail(ErrorCode::kInternal, "'{}' cannot be filled: {}", version.string(), error.message());
  return repository;
}

// A server under one policy, with a job that waits until it is its turn.
class TrainingServer {
 public:
  static Result<std::unique_ptr<TrainingServer>> Start(const BenchContext& context, const Spec& spec,
                                                       const std::vector<Tensor>& inputs, const std::string& policy) {
    std::unique_ptr<TrainingServer> made(new TrainingServer(context, spec, inputs));
    TANDEM_ASSIGN(const auto data, SetupFolder(context, spec.trains.network));
    TANDEM_ASSIGN(const auto trained, TrainedRepository(context, spec.trains.network));
    const std::vector<std::string> flags = {"--colocation", policy, "--model-repository", trained, "--data-root", data};
    if (spec.quota > 0) {
      TANDEM_ASSIGN(made->group_, CpuGroup::Make(spec.quota));
      TANDEM_ASSIGN(made->server_, StartServerIn(context, spec.model, made->group_->doors(), flags));
    } else {
      TANDEM_ASSIGN(made->server_, StartServer(context, spec.model, flags));
    }
    const int port = made->server_->http_port();
    TANDEM_ASSIGN(made->client_, cli::ApiClient::Connect({.url = Format("http://127.0.0.1:{}", port)}));
    TANDEM_TRY(made->SubmitJob());
    return made;
  }

  // CPU seconds of the server alone for one request.
  [[nodiscard]] Result<double> CpuPerRequest() const {
    TANDEM_ASSIGN(const auto request, Request());
    TANDEM_ASSIGN(const double before, server_->CpuSeconds());
    TANDEM_ASSIGN(const auto report, HttpWindow(context_.pace, server_->http_port(), request, 1));
    TANDEM_ASSIGN(const double after, server_->CpuSeconds());
    // Those of the warm-up are in the use, too.
    const double share = Seconds(context_.pace.window) / Seconds(context_.pace.window + context_.pace.warmup);
    return (after - before) * share / static_cast<double>(report.latency.count());
  }

  // The requests of one window; with the training, or without.
  [[nodiscard]] Result<Figures> Serve(double rate, int round, bool train) const {
    if (train) TANDEM_TRY(client_->Post(job_ + "/resume", ""));
    loadgen::LoadSpec load;
    load.port = server_->http_port();
    load.warmup = 500ms;
    load.duration = Window();
    load.seed = static_cast<std::uint64_t>(round) + 1;
    TANDEM_ASSIGN(auto request, Request());
    load.models.push_back({.model = spec_.model,
                           .request = std::move(request),
                           .arrivals = loadgen::ArrivalSpec::Poisson(rate),
                           .slo = {}});
    TANDEM_ASSIGN(const Marks before, Look());
    TANDEM_ASSIGN(const loadgen::LoadReport report, loadgen::RunLoad(load));
    TANDEM_ASSIGN(const Marks after, Look());
    if (train) TANDEM_TRY(client_->Post(job_ + "/pause", ""));
    const loadgen::ModelReport& model = report.models.front();
    if (model.counts.failed + model.counts.rejected > 0 || model.latency.count() == 0) {
      return Fail(ErrorCode::kInternal, "{} of {} requests were not answered",
                  model.counts.failed + model.counts.rejected, model.counts.total());
    }
    Figures figures = Between(before, after);
    figures["p50"] = Seconds(model.latency.Percentile(50));
    figures["p99"] = Seconds(model.latency.Percentile(99));
    return figures;
  }

  // The training of one window, with nobody asking.
  [[nodiscard]] Result<Figures> Train() const {
    TANDEM_TRY(client_->Post(job_ + "/resume", ""));
    TANDEM_ASSIGN(const Marks before, Look());
    std::this_thread::sleep_for(Window());
    TANDEM_ASSIGN(const Marks after, Look());
    TANDEM_TRY(client_->Post(job_ + "/pause", ""));
    return Figures{{"rate", Between(before, after).at("rate")}};
  }

 private:
  // Counters of the server and of its group.
  struct Marks {
    MonotonicTime at;
    double steps = 0;
    double cpu = 0;
    double periods = 0;
    double throttled = 0;
  };

  TrainingServer(const BenchContext& context, const Spec& spec, const std::vector<Tensor>& inputs)
      : context_(context), spec_(spec), inputs_(inputs) {}

  [[nodiscard]] std::chrono::nanoseconds Window() const { return spec_.windows * context_.pace.window; }

  [[nodiscard]] Result<loadgen::HttpRequest> Request() const {
    return loadgen::BuildInferRequest({.port = server_->http_port(), .model = ModelName(spec_.model)}, inputs_);
  }

  // Returns when the job has made its first steps and waits.
  Status SubmitJob() {
    TANDEM_ASSIGN(const Network network, FindNetwork(spec_.trains.network));
    TrainingJob wanted = NetworkJob(network, spec_.trains.batch);
    wanted.model = TrainedName(network.name);
    TANDEM_ASSIGN(const Json::Value job, client_->Post("/v2/train/jobs", JsonLine(TrainingJobToJson(wanted))));
    job_ = "/v2/train/jobs/" + job["id"].asString();
    const MonotonicTime until = RealClock::Instance().Now() + kPatience;
    for (double steps = 0; steps < 3;) {
      TANDEM_ASSIGN(const Marks now, Look());
      steps = now.steps;
      if (RealClock::Instance().Now() > until) return Fail(ErrorCode::kInternal, "waited in vain for a job's steps");
      std::this_thread::sleep_for(kPoll);
    }
    TANDEM_TRY(client_->Post(job_ + "/pause", ""));
    return {};
  }

  [[nodiscard]] Result<Marks> Look() const {
    Marks marks;
    const loadgen::MetricsSource source{
        .target = {.host = "127.0.0.1", .port = server_->http_port()}, .tls = {}, .token = ""};
    TANDEM_ASSIGN(const auto metrics, loadgen::ReadServerMetrics(source, kPatience));
    marks.at = RealClock::Instance().Now();
    for (const auto& [id, job] : metrics.jobs) marks.steps += job.iterations;
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

  [[nodiscard]] Figures Between(const Marks& before, const Marks& after) const {
    const double seconds = Seconds(after.at - before.at);
    const double cores = spec_.quota > 0 ? spec_.quota : context_.threads;
    const double periods = after.periods - before.periods;
    return {{"rate", (after.steps - before.steps) / seconds},
            {"load", (after.cpu - before.cpu) / (seconds * cores)},
            {"throttled", periods > 0 ? (after.throttled - before.throttled) / periods : 0}};
  }

  const BenchContext& context_;
  const Spec& spec_;
  const std::vector<Tensor>& inputs_;
  std::unique_ptr<CpuGroup> group_;  // Outlives what is in it.
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<cli::ApiClient> client_;
  std::string job_;
};

class BesideTraining final : public Measurement {
 public:
  explicit BesideTraining(Spec spec) : spec_(std::move(spec)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> all = {"alone.p50", "alone.p99", "alone.load", "training.rate", "training.left"};
    for (const std::string& policy : spec_.policies) {
      for (const char* figure : {"p50", "p99", "rate", "throttled"}) all.push_back(Format("{}.{}", policy, figure));
    }
    all.emplace_back("better");
    return all;
  }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  // How many of the others answer sooner and train more than the first policy, by their medians.
  [[nodiscard]] int BetterInBoth(SeriesMap& series) const;
  // Why there are no figures.
  [[nodiscard]] SeriesMap NotRun(const std::string& why) const {
    SeriesMap series;
    for (const std::string& name : this->series()) series[name].not_run = why;
    return series;
  }

  const Spec spec_;
};

Result<SeriesMap> BesideTraining::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const std::string what = Format("{} beside training of {}, load {}{}", spec_.model, spec_.trains.network, spec_.load,
                                  spec_.quota > 0 ? Format(", quota {}", spec_.quota) : "");
  context.say(what);
  if (spec_.quota > 0) {
    if (const auto possible = CpuGroup::Make(spec_.quota); !possible) return NotRun(possible.error().message);
  }
  TANDEM_ASSIGN(const auto bare, LoadBare(context, spec_.model, BareThreads::kShared));
  TANDEM_ASSIGN(const auto inputs, loadgen::RandomInputs(bare->signature(), {.seed = 1}));
  std::map<std::string, std::unique_ptr<TrainingServer>> servers;
  for (const std::string& policy : spec_.policies) {
    TANDEM_ASSIGN(servers[policy], TrainingServer::Start(context, spec_, inputs, policy));
  }
  const TrainingServer& first = *servers[spec_.policies.front()];
  const TrainingServer& simple = *servers[kSimple];
  TANDEM_ASSIGN(const double each, first.CpuPerRequest());
  const double rate = spec_.load * (spec_.quota > 0 ? spec_.quota : context.threads) / each;
  context.say(Format("{}: {:.1f} requests/s", what, rate));

  std::map<std::string, int> rounds;  // That a side has behind it.
  std::vector<Side> sides = {
      {.name = "alone", .sample = [&] { return first.Serve(rate, rounds["alone"]++, false); }},
      {.name = "training", .sample = [&] { return simple.Train(); }},
  };
  for (const std::string& policy : spec_.policies) {
    const TrainingServer& server = *servers[policy];
    sides.push_back({.name = policy, .sample = [&, policy] { return server.Serve(rate, rounds[policy]++, true); }});
  }
  TANDEM_ASSIGN(SeriesMap series, Interleave(context, what, sides));
  const std::vector<double>& rates = series["training.rate"].samples;
  const std::vector<double>& loads = series["alone.load"].samples;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    series["training.left"].samples.push_back(rates[i] * (1 - loads[i]));
  }
  series["better"].samples = {static_cast<double>(BetterInBoth(series))};
  return series;
}

int BesideTraining::BetterInBoth(SeriesMap& series) const {
  const auto median = [&](const std::string& policy, const char* figure) {
    std::vector<double> samples = series[Format("{}.{}", policy, figure)].samples;
    const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
    std::ranges::nth_element(samples, middle);
    return *middle;
  };
  const std::string& first = spec_.policies.front();
  return static_cast<int>(std::ranges::count_if(spec_.policies, [&](const std::string& other) {
    return median(other, "p99") < median(first, "p99") && median(other, "rate") > median(first, "rate");
  }));
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseBesideTraining(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  Spec spec;
  TANDEM_ASSIGN(spec.model, fields.Text("model"));
  TANDEM_ASSIGN(spec.trains, ParseTrainedNetwork(fields));
  TANDEM_ASSIGN(spec.load, fields.Number("load", 0.01, 1));
  TANDEM_ASSIGN(spec.windows, fields.Whole("windows", 1, 1000));
  TANDEM_ASSIGN(spec.quota, fields.Number("quota", 0, 1024));
  TANDEM_ASSIGN(spec.policies, fields.Texts("policies"));
  const std::string at = fields.At("policies");
  if (!std::ranges::contains(spec.policies, kSimple)) return Invalid("{}: must hold '{}'", at, kSimple);
  for (const std::string& policy : spec.policies) {
    if (const auto known = MakeColocationPolicy(policy); !known) return Invalid("{}: {}", at, known.error().message);
    if (std::ranges::count(spec.policies, policy) > 1) return Invalid("{}: '{}' is there twice", at, policy);
  }
  return std::make_unique<BesideTraining>(std::move(spec));
}

}  // namespace tandem::bench
