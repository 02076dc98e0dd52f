#include "bench/several_models.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "bench/interleave.h"
#include "bench/training_server.h"
#include "colocation/policy.h"
#include "loadgen/run.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr auto kWarmup = 1s;

struct OfferedModel {
  std::string model;
  double load = 0;  // Share of the machine.
};

struct Spec {
  std::vector<OfferedModel> models;
  std::vector<TrainedNetwork> trains;
  double slo_times = 0;
  std::string policy;
};

// One of them with what was found out about it.
struct Offered {
  ServedModel served;
  double rate = 0;
  std::optional<nanoseconds> slo;
};

// Share of all requests that were answered in time.
double Attainment(const loadgen::LoadReport& report) {
  loadgen::OutcomeCounts counts;
  for (const loadgen::ModelReport& model : report.models) counts += model.counts;
  return static_cast<double>(counts.ok) / static_cast<double>(counts.total());
}

double Missed(const loadgen::LoadReport& report) {
  double missed = 0;
  for (const loadgen::ModelReport& model : report.models) {
    missed += static_cast<double>(model.counts.total() - model.counts.ok);
  }
  return missed;
}

// The server, and the mix that is offered to it.
class Mix {
 public:
  static Result<std::unique_ptr<Mix>> Start(BenchContext& context, const Spec& spec) {
    std::unique_ptr<Mix> mix(new Mix(context, spec));
    TrainingServerSpec wanted{.models = {}, .trains = spec.trains, .policy = spec.policy};
    for (const OfferedModel& model : spec.models) {
      TANDEM_ASSIGN(ServedModel served, PrepareModel(context, model.model));
      mix->offered_.push_back({.served = std::move(served), .slo = {}});
      wanted.models.push_back(model.model);
    }
    TANDEM_ASSIGN(mix->server_, TrainingServer::Start(context, wanted));
    for (std::size_t i = 0; i < spec.models.size(); ++i) {
      TANDEM_ASSIGN(const double each, mix->server_->CpuPerRequest(mix->offered_[i].served));
      mix->offered_[i].rate = spec.models[i].load * context.threads / each;
    }
    return mix;
  }

  // One round: see the header.
  [[nodiscard]] Result<Figures> Sample() {
    const nanoseconds window = context_.pace.window;
    Figures figures;
    for (Offered& model : offered_) model.slo.reset();
    TANDEM_ASSIGN(const TrainingMarks start, server_->Look());
    TANDEM_ASSIGN(const loadgen::LoadReport isolated, Offer(window / 4));
    TANDEM_ASSIGN(const TrainingMarks end, server_->Look());
    figures["load"] = Between(start, end).cores / context_.threads;
    for (std::size_t i = 0; i < offered_.size(); ++i) {
      const loadgen::ModelReport& model = isolated.models[i];
      if (model.counts.ok == 0 || model.counts.ok != model.counts.total()) {
        return Fail(ErrorCode::kInternal, "{}: {} of {} requests were answered without an SLO", model.model,
                    model.counts.ok, model.counts.total());
      }
      const double p99 = Seconds(model.latency.Percentile(99));
      offered_[i].slo = nanoseconds(static_cast<std::int64_t>(1e9 * spec_.slo_times * p99));
      figures[NameOf(i) + ".isolated"] = p99;
      figures[NameOf(i) + ".slo"] = Seconds(*offered_[i].slo);
      figures[NameOf(i) + ".requests"] = offered_[i].rate;
    }
    TANDEM_ASSIGN(const loadgen::LoadReport alone, Offer(window / 4));
    Tell(alone, "attainment_alone", figures);
    TANDEM_TRY(server_->Resume());
    TANDEM_ASSIGN(const TrainingMarks before, server_->Look());
    TANDEM_ASSIGN(const loadgen::LoadReport beside, Offer(window));
    TANDEM_ASSIGN(const TrainingMarks after, server_->Look());
    TANDEM_TRY(server_->Pause());
    Tell(beside, "attainment", figures);
    figures["missed"] = Missed(beside);
    const TrainingSpan span = Between(before, after);
    if (span.missed_by_training) figures["missed_by_training"] = *span.missed_by_training;
    for (std::size_t i = 0; i < spec_.trains.size(); ++i) figures[spec_.trains[i].network + ".rate"] = span.rates[i];
    for (std::size_t i = 0; i < offered_.size(); ++i) {
      figures[NameOf(i) + ".p99"] = Seconds(beside.models[i].latency.Percentile(99));
    }
    return figures;
  }

 private:
  Mix(const BenchContext& context, const Spec& spec) : context_(context), spec_(spec) {}

  [[nodiscard]] std::string NameOf(std::size_t i) const { return ModelName(spec_.models[i].model); }

  // All models at once, each at its rate and with its SLO.
  [[nodiscard]] Result<loadgen::LoadReport> Offer(nanoseconds duration) const {
    TANDEM_TRY(context_.CheckStop());
    loadgen::LoadSpec load;
    load.port = server_->port();
    load.warmup = kWarmup;
    load.duration = duration;
    for (const Offered& model : offered_) {
      TANDEM_ASSIGN(auto request, server_->Request(model.served, model.slo));
      load.models.push_back({.model = model.served.model,
                             .request = std::move(request),
                             .arrivals = loadgen::ArrivalSpec::Poisson(model.rate),
                             .slo = model.slo});
    }
    TANDEM_ASSIGN(loadgen::LoadReport report, loadgen::RunLoad(load, {.stop = context_.stop}));
    TANDEM_TRY(context_.CheckStop());
    for (const loadgen::ModelReport& model : report.models) {
      if (model.counts.total() == 0) return Fail(ErrorCode::kInternal, "{}: no request was due", model.model);
    }
    return report;
  }

  void Tell(const loadgen::LoadReport& report, const std::string& figure, Figures& figures) const {
    figures[figure] = Attainment(report);
    for (std::size_t i = 0; i < offered_.size(); ++i) {
      const loadgen::OutcomeCounts& counts = report.models[i].counts;
      figures[Format("{}.{}", NameOf(i), figure)] =
          static_cast<double>(counts.ok) / static_cast<double>(counts.total());
    }
  }

  const BenchContext& context_;
  const Spec& spec_;
  std::vector<Offered> offered_;  // As in the spec.
  std::unique_ptr<TrainingServer> server_;
};

class SeveralModels final : public Measurement {
 public:
  explicit SeveralModels(Spec spec) : spec_(std::move(spec)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> all = {"attainment", "attainment_alone", "missed", "missed_by_training", "load"};
    for (const OfferedModel& model : spec_.models) {
      for (const char* figure : {"attainment", "attainment_alone", "isolated", "p99", "slo", "requests"}) {
        all.push_back(Format("{}.{}", ModelName(model.model), figure));
      }
    }
    for (const TrainedNetwork& trained : spec_.trains) all.push_back(trained.network + ".rate");
    return all;
  }

  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const override {
    const std::string what = Format("{} models beside {} trainers", spec_.models.size(), spec_.trains.size());
    context.say(what);
    TANDEM_ASSIGN(const auto mix, Mix::Start(context, spec_));
    SeriesMap series;
    for (int round = 0; round < context.pace.rounds; ++round) {
      context.say(Format("{}: round {} of {}", what, round + 1, context.pace.rounds));
      TANDEM_TRY(context.CheckStop());
      TANDEM_ASSIGN(const Figures figures, mix->Sample());
      for (const auto& [name, value] : figures) series[name].samples.push_back(value);
    }
    Series& blamed = series["missed_by_training"];
    if (blamed.samples.empty()) blamed.not_run = "the server does not tell which misses training is to blame for";
    return series;
  }

 private:
  const Spec spec_;
};

}  // namespace

Result<std::unique_ptr<Measurement>> ParseSeveralModels(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  Spec spec;
  TANDEM_ASSIGN(std::vector<JsonFields> models, fields.Objects("models"));
  for (JsonFields& object : models) {
    OfferedModel model;
    TANDEM_ASSIGN(model.model, object.Text("model"));
    TANDEM_ASSIGN(model.load, object.Number("load", 0.001, 1));
    TANDEM_TRY(object.Finish());
    const auto same = [&](const OfferedModel& other) { return ModelName(other.model) == ModelName(model.model); };
    if (std::ranges::any_of(spec.models, same)) return Invalid("{}: is there twice", object.At("model"));
    spec.models.push_back(std::move(model));
  }
  if (spec.models.empty()) return Invalid("{}: must list at least one model", fields.At("models"));
  TANDEM_ASSIGN(std::vector<JsonFields> trains, fields.Objects("trains"));
  for (JsonFields& object : trains) {
    TANDEM_ASSIGN(const TrainedNetwork trained, ParseTrainedNetwork(object));
    TANDEM_TRY(object.Finish());
    if (std::ranges::contains(spec.trains, trained.network, &TrainedNetwork::network)) {
      return Invalid("{}: is there twice", object.At("network"));
    }
    spec.trains.push_back(trained);
  }
  if (spec.trains.empty()) return Invalid("{}: must list at least one network", fields.At("trains"));
  TANDEM_ASSIGN(spec.slo_times, fields.Number("slo_times", 0.1, 1000));
  TANDEM_ASSIGN(spec.policy, fields.Text("policy"));
  if (const auto known = MakeColocationPolicy(spec.policy); !known) {
    return Invalid("{}: {}", fields.At("policy"), known.error().message);
  }
  return std::make_unique<SeveralModels>(std::move(spec));
}

}  // namespace tandem::bench
