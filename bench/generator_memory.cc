// The kinds "generator_outstanding" and "generator_growth".

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <malloc.h>

#include "api/base/format.h"
#include "bench/child_process.h"
#include "bench/generator_kinds.h"
#include "bench/generator_load.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kMostRequests = 10'000'000;
constexpr double kMostSeconds = 3600;
constexpr auto kLookEvery = 10ms;
// How much longer than the rate says it may take until so many are outstanding.
constexpr double kPatience = 10;

std::chrono::nanoseconds FromSeconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

SeriesMap OneSampleEach(std::initializer_list<std::pair<const char*, double>> figures) {
  SeriesMap series;
  for (const auto& [name, value] : figures) series[name].samples.push_back(value);
  return series;
}

class GeneratorOutstanding final : public Measurement {
 public:
  GeneratorOutstanding(GeneratorTarget target, double rate, int requests)
      : target_(std::move(target)), rate_(rate), requests_(requests) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"outstanding", "memory"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const GeneratorTarget target_;
  const double rate_;
  const int requests_;
};

Result<SeriesMap> GeneratorOutstanding::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  context.say(Format("{} outstanding requests", requests_));
  TANDEM_ASSIGN(const auto load, GeneratorLoad::Start(context, target_));
  TANDEM_ASSIGN(loadgen::LoadSpec spec, load->Spec(loadgen::ArrivalSpec::Constant(rate_)));
  spec.duration = FromSeconds(kPatience * requests_ / rate_) + 1s;
  spec.request_timeout = spec.duration + 60s;
  spec.progress_interval = kLookEvery;
  // What earlier measurements have freed must not be reused unseen.
  malloc_trim(0);
  TANDEM_ASSIGN(const auto before, OwnMemoryBytes("VmRSS"));
  std::atomic<bool> reached{false};
  std::size_t outstanding = 0;
  Result<std::uint64_t> after = before;
  const auto look = [&](const loadgen::LoadProgress& progress) {
    outstanding = std::max(outstanding, progress.outstanding);
    if (progress.outstanding >= static_cast<std::size_t>(requests_) && !reached) {
      after = OwnMemoryBytes("VmRSS");
      reached = true;
    }
    if (context.Stopped()) reached = true;
  };
  TANDEM_TRY(loadgen::RunLoad(spec, {.on_progress = look, .stop = &reached}));
  TANDEM_TRY(context.CheckStop());
  if (!reached) {
    return Fail(ErrorCode::kInternal, "at most {} of {} requests were outstanding; does the peer answer?", outstanding,
                requests_);
  }
  if (!after) return std::unexpected(std::move(after).error());
  return OneSampleEach({{"outstanding", static_cast<double>(outstanding)},
                        {"memory", static_cast<double>(*after) - static_cast<double>(before)}});
}

class GeneratorGrowth final : public Measurement {
 public:
  GeneratorGrowth(GeneratorTarget target, double rate, double early, double late)
      : target_(std::move(target)), rate_(rate), early_(early), late_(late) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"early", "late", "growth"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  const GeneratorTarget target_;
  const double rate_;
  const double early_;
  const double late_;
};

Result<SeriesMap> GeneratorGrowth::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  TANDEM_ASSIGN(const auto load, GeneratorLoad::Start(context, target_));
  TANDEM_ASSIGN(loadgen::LoadSpec spec, load->Spec(loadgen::ArrivalSpec::Constant(rate_)));
  spec.duration = FromSeconds(late_);
  Result<std::uint64_t> early = 0;
  Result<std::uint64_t> late = 0;
  const auto look = [&](const loadgen::LoadProgress& progress) {
    // The last one before either time counts.
    if (progress.elapsed <= FromSeconds(early_ + 0.5)) early = OwnMemoryBytes("VmRSS");
    late = OwnMemoryBytes("VmRSS");
    context.say(
        Format("memory of a run: {:.0f} of {:.0f} s", std::chrono::duration<double>(progress.elapsed).count(), late_));
  };
  TANDEM_ASSIGN(const auto report, loadgen::RunLoad(spec, {.on_progress = look, .stop = context.stop}));
  TANDEM_TRY(context.CheckStop());
  const loadgen::ModelReport& model = report.models.front();
  if (model.counts.ok != model.scheduled) {
    return Fail(ErrorCode::kInternal, "{} of {} requests were not answered", model.scheduled - model.counts.ok,
                model.scheduled);
  }
  if (!early) return std::unexpected(std::move(early).error());
  if (!late) return std::unexpected(std::move(late).error());
  const auto first = static_cast<double>(*early);
  const auto last = static_cast<double>(*late);
  return OneSampleEach({{"early", first}, {"late", last}, {"growth", last - first}});
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseGeneratorOutstanding(JsonFields& fields, const std::vector<PeerSpec>& peers) {
  TANDEM_ASSIGN(GeneratorTarget target, ParseGeneratorTarget(fields, peers));
  TANDEM_ASSIGN(const double rate, fields.Number("rate", 1, loadgen::kMaxRate));
  TANDEM_ASSIGN(const int requests, fields.Whole("requests", 1, kMostRequests));
  return std::make_unique<GeneratorOutstanding>(std::move(target), rate, requests);
}

Result<std::unique_ptr<Measurement>> ParseGeneratorGrowth(JsonFields& fields, const std::vector<PeerSpec>& peers) {
  TANDEM_ASSIGN(GeneratorTarget target, ParseGeneratorTarget(fields, peers));
  TANDEM_ASSIGN(const double rate, fields.Number("rate", 1, loadgen::kMaxRate));
  TANDEM_ASSIGN(const double early, fields.Number("early_s", 1, kMostSeconds));
  TANDEM_ASSIGN(const double late, fields.Number("late_s", 2, kMostSeconds));
  if (late <= early) return Invalid("{}: must be above early_s, {}, not {}", fields.At("late_s"), early, late);
  return std::make_unique<GeneratorGrowth>(std::move(target), rate, early, late);
}

}  // namespace tandem::bench
