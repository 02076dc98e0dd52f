#include "bench/overload.h"

#include <chrono>
#include <string>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "bench/bare_session.h"
#include "bench/interleave.h"
#include "bench/load_window.h"
#include "bench/recovery.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/run.h"

namespace tandem::bench {
namespace {

using loadgen::ArrivalSpec;
using loadgen::ModelReport;

// Enough to keep the device busy while answers are on their way.
constexpr int kUsersAtCapacity = 4;
constexpr double kLoadAfterwards = 0.5;
// The second after, and then some to see a recovery that takes longer.
constexpr double kSecondAfter = 1;
constexpr double kAfterwards = 2;
// So many in time are as good as all: at half of the capacity some are missed by chance.
constexpr double kNearlyAll = 0.99;

// A server under load, and what is asked of it.
class LoadedServer {
 public:
  static Result<std::unique_ptr<LoadedServer>> Start(const BenchContext& context, const std::string& model,
                                                     const std::vector<Tensor>& inputs, const char* admission) {
    TANDEM_ASSIGN(auto server, StartServer(context, model, {"--admission", admission}));
    return std::unique_ptr<LoadedServer>(new LoadedServer(context, model, inputs, std::move(server)));
  }

  // One round: see the header.
  [[nodiscard]] Result<Figures> Sample(double slo_runs, double times) const {
    TANDEM_ASSIGN(const auto plain, Request(std::nullopt));
    const int port = server_->http_port();
    TANDEM_ASSIGN(const ModelReport alone, HttpWindow(context_.pace, port, plain, 1));
    TANDEM_ASSIGN(const ModelReport busy, HttpWindow(context_.pace, port, plain, kUsersAtCapacity));
    const auto slo = std::chrono::nanoseconds(
        static_cast<std::int64_t>(slo_runs * static_cast<double>(alone.latency.Percentile(50).count())));
    const double capacity = busy.achieved_rate;
    const double window = Seconds(context_.pace.window);
    TANDEM_ASSIGN(const Phases full, Offer({{.rate = capacity, .seconds = window}}, slo));
    const loadgen::RateStep calm{.rate = kLoadAfterwards * capacity, .seconds = kAfterwards};
    TANDEM_ASSIGN(const Phases undisturbed, Offer({calm}, slo));
    TANDEM_ASSIGN(const Phases over, Offer({{.rate = times * capacity, .seconds = window}, calm}, slo));
    const std::vector<LaterRequest>& later = over[1].requests;
    return Figures{{"capacity", capacity},
                   {"full", static_cast<double>(full[0].counts.ok) / window},
                   {"over", static_cast<double>(over[0].counts.ok) / window},
                   {"recovered", InTimeUntil(later, kSecondAfter)},
                   {"recovery", LastMissed(later)},
                   {"undisturbed", LastMissed(undisturbed[0].requests)},
                   {"recovery_99", RecoveredAfter(later, kNearlyAll)},
                   {"recovery_usual", RecoveredAfter(later, InTimeUntil(undisturbed[0].requests, kAfterwards))},
                   {"refusal", Seconds(over[0].refusals.Percentile(50))}};
  }

 private:
  // What became of the requests that were due in one step of the load.
  struct Phase {
    loadgen::OutcomeCounts counts;
    loadgen::LatencyHistogram refusals;
    std::vector<LaterRequest> requests;  // Due since its begin.
  };
  using Phases = std::vector<Phase>;

  LoadedServer(const BenchContext& context, std::string model, const std::vector<Tensor>& inputs,
               std::unique_ptr<ServerProcess> server)
      : context_(context), model_(std::move(model)), inputs_(inputs), server_(std::move(server)) {}

  [[nodiscard]] Result<loadgen::HttpRequest> Request(std::optional<std::chrono::nanoseconds> slo) const {
    loadgen::InferRequestOptions options{.port = server_->http_port(), .model = ModelName(model_)};
    if (slo) options.headers.emplace_back("X-SLO-Ms", Format("{:.3f}", Ms(*slo)));
    return loadgen::BuildInferRequest(options, inputs_);
  }

  // Poisson arrivals, one step after the other without a pause.
  [[nodiscard]] Result<Phases> Offer(const std::vector<loadgen::RateStep>& steps, std::chrono::nanoseconds slo) const {
    TANDEM_TRY(context_.CheckStop());
    TANDEM_ASSIGN(auto request, Request(slo));
    loadgen::LoadSpec spec;
    spec.port = server_->http_port();
    double duration = 0;
    for (const loadgen::RateStep& step : steps) duration += step.seconds;
    spec.duration = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * duration));
    spec.models.push_back(
        {.model = model_, .request = std::move(request), .arrivals = ArrivalSpec::Steps(steps), .slo = slo});
    Phases phases(steps.size());
    const auto judge = [&](const loadgen::JudgedRequest& judged) {
      double due = Seconds(judged.record.scheduled - judged.start);
      std::size_t phase = 0;
      while (phase + 1 < steps.size() && due >= steps[phase].seconds) due -= steps[phase++].seconds;
      phases[phase].counts.Add(judged.outcome);
      phases[phase].requests.push_back({.due = due, .missed = judged.outcome != loadgen::Outcome::kOk});
      if (judged.outcome == loadgen::Outcome::kRejected) phases[phase].refusals.Record(judged.latency);
    };
    TANDEM_ASSIGN(const loadgen::LoadReport report, loadgen::RunLoad(spec, {.on_request = judge}));
    const ModelReport& model = report.models.front();
    if (model.counts.failed > 0) {
      return Fail(ErrorCode::kInternal, "{} of {} requests failed: {}", model.counts.failed, model.counts.total(),
                  model.failures.begin()->first);
    }
    for (const Phase& phase : phases) {
      if (phase.requests.empty()) return Fail(ErrorCode::kInternal, "no request was due in a step of the load");
    }
    return phases;
  }

  const BenchContext& context_;
  const std::string model_;
  const std::vector<Tensor>& inputs_;
  const std::unique_ptr<ServerProcess> server_;
};

class Overload final : public Measurement {
 public:
  Overload(std::string model, double slo_runs, double times)
      : model_(std::move(model)), slo_runs_(slo_runs), times_(times) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> all;
    for (const char* side : kAdmissions) {
      for (const char* figure : {"capacity", "full", "over", "recovered", "recovery", "undisturbed", "recovery_99",
                                 "recovery_usual", "refusal"}) {
        all.push_back(Format("{}.{}", side, figure));
      }
    }
    return all;
  }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const override {
    const std::string what = Format("overload of {}", model_);
    context.say(what);
    TANDEM_ASSIGN(const auto bare, LoadBare(context, model_, BareThreads::kShared));
    TANDEM_ASSIGN(const auto inputs, loadgen::RandomInputs(bare->signature(), {.seed = 1}));
    std::vector<std::unique_ptr<LoadedServer>> servers;
    std::vector<Side> sides;
    for (const char* admission : kAdmissions) {
      TANDEM_ASSIGN(auto started, LoadedServer::Start(context, model_, inputs, admission));
      const LoadedServer& server = *servers.emplace_back(std::move(started));
      sides.push_back({.name = admission, .sample = [this, &server] { return server.Sample(slo_runs_, times_); }});
    }
    return Interleave(context, what, sides);
  }

 private:
  static constexpr const char* kAdmissions[] = {"deadline", "queue"};

  const std::string model_;
  const double slo_runs_;
  const double times_;
};

}  // namespace

Result<std::unique_ptr<Measurement>> ParseOverload(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::string model, fields.Text("model"));
  TANDEM_ASSIGN(const double slo_runs, fields.Number("slo_runs", 1, 1000));
  TANDEM_ASSIGN(const double times, fields.Number("times", 0.1, 100));
  return std::make_unique<Overload>(std::move(model), slo_runs, times);
}

}  // namespace tandem::bench
