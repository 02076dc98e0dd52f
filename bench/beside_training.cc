#include "bench/beside_training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "bench/better_policies.h"
#include "bench/interleave.h"
#include "bench/run_queue.h"
#include "bench/run_queue_probe.h"
#include "bench/training_server.h"
#include "colocation/policy.h"
#include "loadgen/run.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

// What trains alone to compare with.
const std::string kSimple = "idle";
// For each second of a window; single requests are sent in addition to it.
constexpr double kProbesPerSecond = 40;
constexpr int kMostJobs = 8;
// Of the request whose threads do nothing but wake, compute for microseconds and answer.
const std::string kProbeModel = "tiny";

struct Spec {
  std::string model;
  TrainedNetwork trains;
  int jobs = 1;  // That train it, each for itself.
  double load = 0;
  int windows = 1;
  double quota = 0;
  std::vector<std::string> policies;
  std::vector<std::string> trained_alone;  // Of these, those whose own trainer is also measured with nobody asking.

  // Whose trainer alone the training of that policy is compared with.
  [[nodiscard]] const std::string& AloneOf(const std::string& policy) const {
    return std::ranges::contains(trained_alone, policy) ? policy : kSimple;
  }
};

// What is asked of one server in a round.
struct Round {
  double rate = 0;  // Of requests.
  int number = 0;
  bool train = false;
  bool probe = false;
};

// Steps a second of all jobs.
double AllRates(const TrainingSpan& span) {
  return std::accumulate(span.rates.begin(), span.rates.end(), 0.0);
}

// A server under one policy, and what is measured of it.
class PolicySide {
 public:
  static Result<std::unique_ptr<PolicySide>> Start(const BenchContext& context, const Spec& spec,
                                                   const std::vector<ServedModel>& served, const std::string& policy) {
    TrainingServerSpec wanted{.models = {},
                              .trains = std::vector(static_cast<std::size_t>(spec.jobs), spec.trains),
                              .policy = policy,
                              .quota = spec.quota};
    for (const ServedModel& model : served) wanted.models.push_back(model.model);
    TANDEM_ASSIGN(auto server, TrainingServer::Start(context, wanted));
    return std::unique_ptr<PolicySide>(new PolicySide(context, spec, served, std::move(server)));
  }

  // Whether the kernel counts what its threads wait.
  [[nodiscard]] Status RunQueueCounted() const {
    TANDEM_TRY(RunQueueWatch::Of(server_->pid()));
    return {};
  }
  [[nodiscard]] Result<double> CpuPerRequest() const { return server_->CpuPerRequest(served_.front()); }

  // The requests of one window; with the training, or without.
  [[nodiscard]] Result<Figures> Serve(const Round& round) const {
    if (round.train) TANDEM_TRY(server_->Resume());
    TANDEM_ASSIGN(const TrainingMarks before, server_->Look());
    TANDEM_ASSIGN(Figures figures, Load(round));
    TANDEM_ASSIGN(const TrainingMarks after, server_->Look());
    const TrainingSpan span = Between(before, after);
    figures["rate"] = AllRates(span);
    figures["load"] = span.cores / (spec_.quota > 0 ? spec_.quota : context_.threads);
    figures["throttled"] = span.throttled;
    if (span.acknowledged) figures["acknowledged"] = *span.acknowledged;
    if (round.probe) {
      TANDEM_ASSIGN(figures["wait"], RunQueueWait(served_.back(), round));
      TANDEM_ASSIGN(figures["wait_run"], RunQueueWait(served_.front(), round));
    }
    if (round.train) TANDEM_TRY(server_->Pause());
    return figures;
  }

  // The training of one window, with nobody asking.
  [[nodiscard]] Result<Figures> Train() const {
    TANDEM_TRY(server_->Resume());
    TANDEM_ASSIGN(const TrainingMarks before, server_->Look());
    std::this_thread::sleep_for(Window());
    TANDEM_ASSIGN(const TrainingMarks after, server_->Look());
    TANDEM_TRY(server_->Pause());
    return Figures{{"alone_rate", AllRates(Between(before, after))}};
  }

 private:
  PolicySide(const BenchContext& context, const Spec& spec, const std::vector<ServedModel>& served,
             std::unique_ptr<TrainingServer> server)
      : context_(context), spec_(spec), served_(served), server_(std::move(server)) {}

  [[nodiscard]] std::chrono::nanoseconds Window() const { return spec_.windows * context_.pace.window; }

  [[nodiscard]] Result<Figures> Load(const Round& round) const {
    loadgen::LoadSpec load;
    load.port = server_->port();
    load.warmup = 500ms;
    load.duration = Window();
    load.seed = static_cast<std::uint64_t>(round.number) + 1;
    TANDEM_ASSIGN(auto request, server_->Request(served_.front()));
    load.models.push_back({.model = spec_.model,
                           .request = std::move(request),
                           .arrivals = loadgen::ArrivalSpec::Poisson(round.rate),
                           .slo = {}});
    TANDEM_ASSIGN(const loadgen::LoadReport report, loadgen::RunLoad(load));
    const loadgen::ModelReport& model = report.models.front();
    if (model.counts.failed + model.counts.rejected > 0 || model.latency.count() == 0) {
      return Fail(ErrorCode::kInternal, "{} of {} requests were not answered",
                  model.counts.failed + model.counts.rejected, model.counts.total());
    }
    return Figures{{"p50", Seconds(model.latency.Percentile(50))}, {"p99", Seconds(model.latency.Percentile(99))}};
  }

  [[nodiscard]] Result<double> RunQueueWait(const ServedModel& model, const Round& round) const {
    TANDEM_ASSIGN(auto request, server_->Request(model));
    return Probe({.server = server_->pid(),
                  .port = server_->port(),
                  .request = std::move(request),
                  .requests = static_cast<int>(std::ceil(kProbesPerSecond * Seconds(Window()))),
                  .seed = static_cast<std::uint64_t>(round.number) + 1});
  }

  const BenchContext& context_;
  const Spec& spec_;
  const std::vector<ServedModel>& served_;  // That of the spec, and last the one to probe with.
  const std::unique_ptr<TrainingServer> server_;
};

class BesideTraining final : public Measurement {
 public:
  explicit BesideTraining(Spec spec) : spec_(std::move(spec)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> all = {"better", "better_by_medians"};
    for (const char* figure : {"p50", "p99", "load", "wait", "wait_run"}) all.push_back(Format("alone.{}", figure));
    for (const std::string& policy : spec_.policies) {
      for (const char* figure :
           {"p50", "p99", "rate", "alone_rate", "kept", "throttled", "acknowledged", "wait", "wait_run"}) {
        all.push_back(Format("{}.{}", policy, figure));
      }
    }
    return all;
  }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  [[nodiscard]] std::string Title() const {
    return Format("{} beside training of {}{}, load {}{}", spec_.model, spec_.jobs > 1 ? Format("{} ", spec_.jobs) : "",
                  spec_.trains.network, spec_.load, spec_.quota > 0 ? Format(", quota {}", spec_.quota) : "");
  }
  // What is computed from the other series.
  void Derive(SeriesMap& series) const;
  // Why there are no figures.
  [[nodiscard]] SeriesMap NotRun(const std::string& why) const {
    SeriesMap series;
    for (const std::string& name : this->series()) series[name].not_run = why;
    return series;
  }

  const Spec spec_;
};

Result<SeriesMap> BesideTraining::Run(BenchContext& context, const std::set<std::string>& wanted) const {
  const std::string what = Title();
  context.say(what);
  if (spec_.quota > 0) {
    if (const auto possible = CpuGroup::Make(spec_.quota); !possible) return NotRun(possible.error().message);
  }
  std::vector<ServedModel> served;
  TANDEM_ASSIGN(served.emplace_back(), PrepareModel(context, spec_.model));
  const auto waits = [](const std::string& name) { return name.ends_with(".wait") || name.ends_with(".wait_run"); };
  if (std::ranges::any_of(wanted, waits) && spec_.model != kProbeModel) {
    TANDEM_ASSIGN(served.emplace_back(), PrepareModel(context, kProbeModel));
  }
  std::map<std::string, std::unique_ptr<PolicySide>> servers;
  for (const std::string& policy : spec_.policies) {
    TANDEM_ASSIGN(servers[policy], PolicySide::Start(context, spec_, served, policy));
  }
  const PolicySide& first = *servers[spec_.policies.front()];
  TANDEM_ASSIGN(const double each, first.CpuPerRequest());
  const double rate = spec_.load * (spec_.quota > 0 ? spec_.quota : context.threads) / each;
  context.say(Format("{}: {:.1f} requests/s", what, rate));

  const Status counted = first.RunQueueCounted();
  std::map<std::string, int> rounds;  // That a side has behind it.
  const auto serve = [&](const PolicySide& side, const std::string& name, bool train) {
    const bool probe = wanted.contains(name + ".wait") || wanted.contains(name + ".wait_run");
    return side.Serve({.rate = rate, .number = rounds[name]++, .train = train, .probe = probe && counted});
  };
  std::vector<Side> sides = {
      {.name = "alone", .sample = [&] { return serve(first, "alone", false); }},
  };
  for (const std::string& policy : spec_.trained_alone) {
    sides.push_back({.name = policy, .sample = [&, policy] { return servers[policy]->Train(); }});
  }
  for (const std::string& policy : spec_.policies) {
    sides.push_back({.name = policy, .sample = [&, policy] { return serve(*servers[policy], policy, true); }});
  }
  TANDEM_ASSIGN(SeriesMap series, Interleave(context, what, sides));
  Derive(series);
  for (const std::string& name : wanted) {
    if (series[name].samples.empty() && !counted) series[name].not_run = counted.error().message;
  }
  return series;
}

void BesideTraining::Derive(SeriesMap& series) const {
  const std::vector<double>& loads = series["alone.load"].samples;
  std::vector<PolicyRounds> policies;
  for (const std::string& policy : spec_.policies) {
    const std::vector<double>& rates = series[policy + ".rate"].samples;
    const std::vector<double>& alone = series[spec_.AloneOf(policy) + ".alone_rate"].samples;
    std::vector<double>& kept = series[policy + ".kept"].samples;
    for (std::size_t i = 0; i < rates.size(); ++i) kept.push_back(rates[i] / (alone.at(i) * (1 - loads.at(i))));
    policies.push_back({.p99 = series[policy + ".p99"].samples, .kept = kept});
    Series& acknowledged = series[policy + ".acknowledged"];
    if (acknowledged.samples.empty()) acknowledged.not_run = "no trainer was told to wait or to go on";
  }
  series["better"].samples = {static_cast<double>(BetterByRounds(policies))};
  series["better_by_medians"].samples = {static_cast<double>(BetterByMedians(policies))};
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseBesideTraining(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  Spec spec;
  TANDEM_ASSIGN(spec.model, fields.Text("model"));
  TANDEM_ASSIGN(spec.trains, ParseTrainedNetwork(fields));
  TANDEM_ASSIGN(spec.jobs, fields.WholeOr("jobs", 1, kMostJobs, 1));
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
  TANDEM_ASSIGN(spec.trained_alone, fields.Texts("trained_alone"));
  if (spec.trained_alone.empty()) spec.trained_alone = spec.policies;
  // A policy may choose what it uses of a quota when nobody asks: that is no measure of what there is to be used.
  if (spec.quota > 0) spec.trained_alone = {kSimple};
  if (!std::ranges::contains(spec.trained_alone, kSimple)) {
    return Invalid("{}: must hold '{}'", fields.At("trained_alone"), kSimple);
  }
  for (const std::string& policy : spec.trained_alone) {
    if (!std::ranges::contains(spec.policies, policy)) {
      return Invalid("{}: '{}' is not among the policies", fields.At("trained_alone"), Excerpt(policy));
    }
  }
  return std::make_unique<BesideTraining>(std::move(spec));
}

}  // namespace tandem::bench
