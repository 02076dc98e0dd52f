#include "bench/beside_training.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "bench/better_policies.h"
#include "bench/laps.h"
#include "bench/policy_side.h"
#include "colocation/policy.h"

namespace tandem::bench {
namespace {

// What trains alone to compare with.
const std::string kSimple = "idle";
// For each second of a turn; single requests are sent in addition to it.
constexpr double kProbesPerSecond = 40;
constexpr int kMostJobs = 8;
// Of the request whose threads do nothing but wake, compute for microseconds and answer.
const std::string kProbeModel = "tiny";

struct Spec {
  std::string model;
  TrainedNetwork trains;
  int jobs = 1;  // That train it, each for itself.
  double load = 0;
  int windows = 1;  // That make a turn.
  int pool = 1;     // Laps that make a figure.
  double quota = 0;
  std::vector<std::string> policies;
  std::vector<std::string> trained_alone;  // Of these, those whose own trainer is also measured with nobody asking.

  // Whose trainer alone the training of that policy is compared with.
  [[nodiscard]] const std::string& AloneOf(const std::string& policy) const {
    return std::ranges::contains(trained_alone, policy) ? policy : kSimple;
  }
};

class BesideTraining final : public Measurement {
 public:
  explicit BesideTraining(Spec spec) : spec_(std::move(spec)) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    std::vector<std::string> all = {"better", "better_by_medians"};
    for (const char* figure : {"asked", "p50", "p99", "load", "wait", "wait_run"}) {
      all.push_back(Format("alone.{}", figure));
    }
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
  // Why there are no figures.
  [[nodiscard]] SeriesMap NotRun(const std::string& why) const {
    SeriesMap series;
    for (const std::string& name : this->series()) series[name].not_run = why;
    return series;
  }

  const Spec spec_;
};

// The laps of all sides of one measurement.
class Race {
 public:
  Race(const BenchContext& context, const Spec& spec, const PolicySide::Spec& sides,
       const std::set<std::string>& wanted)
      : context_(context), spec_(spec), sides_(sides), wanted_(wanted) {}

  [[nodiscard]] Status Start(const std::string& what);
  [[nodiscard]] Status RunLaps(const std::string& what);
  [[nodiscard]] SeriesMap Tell();

 private:
  // The name under which what trains alone has its laps.
  static std::string AloneName(const std::string& policy) { return policy + " alone"; }

  Status Serve(const PolicySide& side, const std::string& name, bool train, int lap);
  // How many requests that side is probed with in that lap: once for each figure, and none where nobody wants waits.
  [[nodiscard]] int Probes(const std::string& name, int lap) const;
  void TellPolicy(const std::string& policy, std::span<const double> loads, SeriesMap& series) const;
  // What the policy came to in each lap; its training by all that it could have been.
  [[nodiscard]] PolicyRounds ByLapOf(const std::string& policy) const;
  [[nodiscard]] std::size_t PoolSize() const { return static_cast<std::size_t>(spec_.pool); }
  [[nodiscard]] double Cores() const { return spec_.quota > 0 ? spec_.quota : context_.threads; }

  const BenchContext& context_;
  const Spec& spec_;
  const PolicySide::Spec& sides_;
  const std::set<std::string>& wanted_;
  std::map<std::string, std::unique_ptr<PolicySide>> servers_;
  double rate_ = 0;  // Of requests.
  Status counted_;   // Whether the kernel counts what threads wait.
  std::map<std::string, std::vector<Lap>> laps_;
  SeriesMap waits_;
};

Status Race::Start(const std::string& what) {
  for (const std::string& policy : spec_.policies) {
    TANDEM_ASSIGN(servers_[policy], PolicySide::Start(context_, sides_, policy));
  }
  const PolicySide& first = *servers_[spec_.policies.front()];
  counted_ = first.RunQueueCounted();
  TANDEM_ASSIGN(const double each, first.CpuPerRequest());
  rate_ = spec_.load * Cores() / each;
  context_.say(Format("{}: {:.1f} requests/s", what, rate_));
  return {};
}

int Race::Probes(const std::string& name, int lap) const {
  const bool asked = wanted_.contains(name + ".wait") || wanted_.contains(name + ".wait_run");
  if (!asked || !counted_ || lap % spec_.pool != 0) return 0;
  return static_cast<int>(std::ceil(kProbesPerSecond * Seconds(sides_.turn) * spec_.pool));
}

Status Race::Serve(const PolicySide& side, const std::string& name, bool train, int lap) {
  const PolicySide::Turn turn{
      .rate = rate_, .seed = static_cast<std::uint64_t>(lap) + 1, .train = train, .probes = Probes(name, lap)};
  TANDEM_ASSIGN(PolicySide::Served served, side.Serve(turn));
  laps_[name].push_back(std::move(served.lap));
  for (const auto& [figure, value] : served.waits) waits_[Format("{}.{}", name, figure)].samples.push_back(value);
  return {};
}

Status Race::RunLaps(const std::string& what) {
  std::vector<std::function<Status(int)>> turns;
  turns.emplace_back([this](int lap) { return Serve(*servers_[spec_.policies.front()], "alone", false, lap); });
  for (const std::string& policy : spec_.trained_alone) {
    turns.emplace_back([this, &policy](int) -> Status {
      TANDEM_ASSIGN(laps_[AloneName(policy)].emplace_back(), servers_[policy]->Train());
      return {};
    });
  }
  for (const std::string& policy : spec_.policies) {
    turns.emplace_back([this, &policy](int lap) { return Serve(*servers_[policy], policy, true, lap); });
  }
  int lap = 0;
  for (const auto& order : DrawOrders(turns.size(), static_cast<std::size_t>(context_.pace.rounds), 1)) {
    context_.say(Format("{}: lap {} of {}", what, lap + 1, context_.pace.rounds));
    for (const std::size_t next : order) {
      TANDEM_TRY(context_.CheckStop());
      TANDEM_TRY(turns[next](lap));
    }
    ++lap;
  }
  return {};
}

void Race::TellPolicy(const std::string& policy, std::span<const double> loads, SeriesMap& series) const {
  const auto tell = [&](const char* figure, double value) {
    series[Format("{}.{}", policy, figure)].samples.push_back(value);
  };
  const auto served = Heaps(laps_.at(policy), PoolSize());
  const auto alone = Heaps(laps_.at(AloneName(spec_.AloneOf(policy))), PoolSize());
  for (std::size_t i = 0; i < served.size(); ++i) {
    Figures figures = Pool(served[i]);
    for (const char* figure : {"p50", "p99", "rate", "throttled"}) tell(figure, figures[figure]);
    if (figures.contains("acknowledged")) tell("acknowledged", figures["acknowledged"]);
    const double rate_alone = Pool(alone[i])["rate"];
    tell("kept", figures["rate"] / (rate_alone * (1 - loads[i])));
    if (spec_.AloneOf(policy) == policy) tell("alone_rate", rate_alone);
  }
  Series& acknowledged = series[policy + ".acknowledged"];
  if (acknowledged.samples.empty()) acknowledged.not_run = "no trainer was told to wait or to go on";
}

PolicyRounds Race::ByLapOf(const std::string& policy) const {
  const double rate_alone = Pool(laps_.at(AloneName(spec_.AloneOf(policy))))["rate"];
  std::vector<double> whole;
  for (const Lap& lap : laps_.at("alone")) whole.push_back(rate_alone * (1 - lap.span.cores / Cores()));
  return ByLap(laps_.at(policy), whole);
}

SeriesMap Race::Tell() {
  SeriesMap series = std::move(waits_);
  std::vector<double> loads;
  for (const auto& laps : Heaps(laps_.at("alone"), PoolSize())) {
    Figures figures = Pool(laps);
    loads.push_back(figures["cores"] / Cores());
    series["alone.asked"].samples.push_back(rate_);
    for (const char* figure : {"p50", "p99"}) series[Format("alone.{}", figure)].samples.push_back(figures[figure]);
  }
  series["alone.load"].samples = loads;
  std::vector<PolicyRounds> by_lap;
  std::vector<PolicyRounds> by_figure;
  for (const std::string& policy : spec_.policies) {
    TellPolicy(policy, loads, series);
    by_lap.push_back(ByLapOf(policy));
    by_figure.push_back({.p99 = series[policy + ".p99"].samples, .kept = series[policy + ".kept"].samples});
  }
  series["better"].samples = {static_cast<double>(BetterByRounds(by_lap))};
  series["better_by_medians"].samples = {static_cast<double>(BetterByMedians(by_figure))};
  for (const std::string& name : wanted_) {
    if (series[name].samples.empty() && !counted_) series[name].not_run = counted_.error().message;
  }
  return series;
}

Result<SeriesMap> BesideTraining::Run(BenchContext& context, const std::set<std::string>& wanted) const {
  const std::string what = Title();
  context.say(what);
  if (spec_.quota > 0) {
    if (const auto possible = CpuGroup::Make(spec_.quota); !possible) return NotRun(possible.error().message);
  }
  PolicySide::Spec sides{.served = {},
                         .trained = std::vector(static_cast<std::size_t>(spec_.jobs), spec_.trains),
                         .quota = spec_.quota,
                         .turn = spec_.windows * context.pace.window};
  TANDEM_ASSIGN(sides.served.emplace_back(), PrepareModel(context, spec_.model));
  const auto waits = [](const std::string& name) { return name.ends_with(".wait") || name.ends_with(".wait_run"); };
  if (std::ranges::any_of(wanted, waits) && spec_.model != kProbeModel) {
    TANDEM_ASSIGN(sides.served.emplace_back(), PrepareModel(context, kProbeModel));
  }
  Race race(context, spec_, sides, wanted);
  TANDEM_TRY(race.Start(what));
  TANDEM_TRY(race.RunLaps(what));
  return race.Tell();
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseBesideTraining(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  Spec spec;
  TANDEM_ASSIGN(spec.model, fields.Text("model"));
  TANDEM_ASSIGN(spec.trains, ParseTrainedNetwork(fields));
  TANDEM_ASSIGN(spec.jobs, fields.WholeOr("jobs", 1, kMostJobs, 1));
  TANDEM_ASSIGN(spec.load, fields.Number("load", 0.01, 1));
  TANDEM_ASSIGN(spec.windows, fields.Whole("windows", 1, 1000));
  TANDEM_ASSIGN(spec.pool, fields.WholeOr("pool", 1, 1000, 1));
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
