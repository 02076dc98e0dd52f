// The kinds "generator_rate" and "generator_lag".

#include <chrono>
#include <string>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "bench/generator_kinds.h"
#include "bench/generator_load.h"
#include "bench/interleave.h"
#include "loadgen/arrival_text.h"
#include "loadgen/rate_search.h"

namespace tandem::bench {
namespace {

// How fine the search is. What passed once is tried once more: of two lucky windows in a row there are few.
constexpr double kTolerance = 0.05;
constexpr int kConfirmations = 1;
constexpr int kMostTrials = 20;
// What is held below this share of the first rate tells more about the machine than about the generator.
constexpr double kLowestShare = 0.1;

class GeneratorRate final : public Measurement {
 public:
  GeneratorRate(GeneratorTarget target, double start) : target_(std::move(target)), start_(start) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"rate"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const GeneratorTarget target_;
  const double start_;
};

Result<bool> Holds(const BenchContext& context, const GeneratorLoad& load, double rate) {
  TANDEM_ASSIGN(loadgen::LoadSpec spec, load.Spec(loadgen::ArrivalSpec::Constant(rate)));
  spec.warmup = context.pace.warmup;
  spec.duration = context.pace.window;
  TANDEM_ASSIGN(const loadgen::LoadReport report, loadgen::RunLoad(spec, {.stop = context.stop}));
  TANDEM_TRY(context.CheckStop());
  const loadgen::ModelReport& model = report.models.front();
  const std::vector<std::string> problems = loadgen::GeneratorProblems(report.health, std::nullopt);
  const bool held = problems.empty() && model.counts.ok == model.scheduled;
  context.say(Format("{:.0f} requests/s: {}", rate,
                     held               ? "held"
                     : problems.empty() ? Format("{} failed", model.scheduled - model.counts.ok)
                                        : problems.front()));
  return held;
}

// 0 when none is.
Result<double> HighestHeld(const BenchContext& context, const GeneratorLoad& load, double start) {
  TANDEM_ASSIGN(auto search, loadgen::RateSearch::Create({.start = start,
                                                          .lowest = start * kLowestShare,
                                                          .tolerance = kTolerance,
                                                          .confirmations = kConfirmations,
                                                          .max_trials = kMostTrials}));
  while (const auto rate = search.Next()) {
    TANDEM_ASSIGN(const bool held, Holds(context, load, *rate));
    TANDEM_TRY(search.Observe(*rate, held ? loadgen::VerdictKind::kPass : loadgen::VerdictKind::kFail));
  }
  return search.result().rate.value_or(0);
}

Result<SeriesMap> GeneratorRate::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  TANDEM_ASSIGN(const auto load, GeneratorLoad::Start(context, target_));
  const Side side{.name = "generator", .sample = [&]() -> Result<Figures> {
                    TANDEM_ASSIGN(const double rate, HighestHeld(context, *load, start_));
                    return Figures{{"rate", rate}};
                  }};
  TANDEM_ASSIGN(SeriesMap series, Interleave(context, "highest rate", {side}));
  return SeriesMap{{"rate", std::move(series["generator.rate"])}};
}

class GeneratorLag final : public Measurement {
 public:
  GeneratorLag(GeneratorTarget target, loadgen::ArrivalSpec arrivals)
      : target_(std::move(target)), arrivals_(std::move(arrivals)) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"lag_p50", "lag_p99", "lag_max", "busy"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const GeneratorTarget target_;
  const loadgen::ArrivalSpec arrivals_;
};

Result<SeriesMap> GeneratorLag::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  TANDEM_ASSIGN(const auto load, GeneratorLoad::Start(context, target_));
  TANDEM_ASSIGN(loadgen::LoadSpec spec, load->Spec(arrivals_));
  spec.warmup = context.pace.warmup;
  spec.duration = context.pace.window;
  const Side side{.name = "generator", .sample = [&]() -> Result<Figures> {
                    ++spec.seed;
                    TANDEM_ASSIGN(const auto report, loadgen::RunLoad(spec, {.stop = context.stop}));
                    const loadgen::ModelReport& model = report.models.front();
                    if (model.counts.ok != model.scheduled) {
                      return Fail(ErrorCode::kInternal, "{} of {} requests were not answered",
                                  model.scheduled - model.counts.ok, model.scheduled);
                    }
                    const loadgen::LatencyHistogram& lag = report.health.send_lag;
                    return Figures{{"lag_p50", Seconds(lag.Percentile(50))},
                                   {"lag_p99", Seconds(lag.Percentile(99))},
                                   {"lag_max", Seconds(lag.Max())},
                                   {"busy", report.health.cpu_share}};
                  }};
  const std::string what = Format("send lag, {}", loadgen::ArrivalKindName(arrivals_.kind));
  TANDEM_ASSIGN(SeriesMap sampled, Interleave(context, what, {side}));
  SeriesMap series;
  for (const std::string& name : this->series()) series[name] = std::move(sampled["generator." + name]);
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseGeneratorRate(JsonFields& fields, const std::vector<PeerSpec>& peers) {
  TANDEM_ASSIGN(GeneratorTarget target, ParseGeneratorTarget(fields, peers));
  TANDEM_ASSIGN(const double start, fields.Number("start", 1, loadgen::kMaxRate));
  return std::make_unique<GeneratorRate>(std::move(target), start);
}

Result<std::unique_ptr<Measurement>> ParseGeneratorLag(JsonFields& fields, const std::vector<PeerSpec>& peers) {
  TANDEM_ASSIGN(GeneratorTarget target, ParseGeneratorTarget(fields, peers));
  TANDEM_ASSIGN(const std::string text, fields.Text("arrivals"));
  TANDEM_ASSIGN(const std::optional<double> rate, fields.OptionalNumber("rate", 0, loadgen::kMaxRate));
  auto arrivals = loadgen::ParseArrivals(text, {.rate = rate, .users = {}});
  if (!arrivals) return Invalid("{}: {}", fields.At("arrivals"), arrivals.error().message);
  if (arrivals->kind == loadgen::ArrivalKind::kTrace || arrivals->kind == loadgen::ArrivalKind::kClosed) {
    return Invalid("{}: must be an open loop without a file, not '{}'", fields.At("arrivals"), text);
  }
  return std::make_unique<GeneratorLag>(std::move(target), *std::move(arrivals));
}

}  // namespace tandem::bench
