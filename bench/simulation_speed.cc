#include "bench/simulation_speed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/base/clock.h"
#include "api/base/duration.h"
#include "api/base/format.h"
#include "bench/context.h"
#include "colocation/policy.h"
#include "colocation/simulation/simulation.h"
#include "server/cli/simulate_scenario.h"

namespace tandem::bench {
namespace {

constexpr int kMostRequests = 10'000'000;

class SimulationSpeed final : public Measurement {
 public:
  SimulationSpeed(std::string file, std::string of_case, int requests)
      : file_(std::move(file)), case_(std::move(of_case)), requests_(requests) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"seconds"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  [[nodiscard]] Result<simulation::Scenario> Read(const BenchContext& context) const;

  const std::string file_;
  const std::string case_;
  const int requests_;
};

Result<simulation::Scenario> SimulationSpeed::Read(const BenchContext& context) const {
  TANDEM_ASSIGN(cli::SimulationFile file,
                cli::ReadSimulation((context.folder / file_).string(), {.requests = static_cast<double>(requests_)}));
  const auto found =
      case_.empty() ? file.cases.begin() : std::ranges::find(file.cases, case_, &cli::SimulatedCase::name);
  if (found == file.cases.end()) return Invalid("{} has no case '{}'", file_, case_);
  if (found->scenario.models.empty()) return Invalid("{} has no requests to simulate", file_);
  // In one simulation what the file divides among its rounds.
  found->scenario.duration *= found->rounds;
  return std::move(found->scenario);
}

Result<SeriesMap> SimulationSpeed::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const Clock& clock = RealClock::Instance();
  TANDEM_ASSIGN(const auto policy, MakeColocationPolicy("tandem"));
  TANDEM_ASSIGN(const simulation::Scenario scenario, Read(context));
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("simulating {} requests: round {} of {}", requests_, round + 1, context.pace.rounds));
    TANDEM_TRY(context.CheckStop());
    const MonotonicTime began = clock.Now();
    const simulation::SimulationResult result = simulation::Simulate(scenario, *policy);
    series["seconds"].samples.push_back(Seconds(clock.Now() - began));
    std::uint64_t offered = 0;
    for (const simulation::ModelResult& model : result.models) offered += model.offered;
    // They come by chance.
    if (static_cast<double>(offered) < 0.9 * requests_) {
      return Fail(ErrorCode::kInternal, "{} requests were simulated instead of {}", offered, requests_);
    }
  }
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseSimulationSpeed(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::string file, fields.Text("file"));
  TANDEM_ASSIGN(std::string of_case, fields.TextOr("case", ""));
  TANDEM_ASSIGN(const int requests, fields.Whole("requests", 1000, kMostRequests));
  return std::make_unique<SimulationSpeed>(std::move(file), std::move(of_case), requests);
}

}  // namespace tandem::bench
