#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "loadgen/report_file.h"
#include "server/cli/command.h"
#include "server/cli/pretty_json.h"
#include "server/cli/simulate_report.h"
#include "server/cli/simulate_run.h"
#include "server/cli/simulate_scenario.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

struct SimulateOptions {
  std::string scenario;
  std::vector<std::string> policies;
  SimulationChanges changes;
  std::string json_file;
};

Status OfJson(const Status& status) {
  if (status) return {};
  return Fail(status.error().code, "--json {}", status.error().message);
}

void Print(const SimulationFile& file, const CaseOutcome& outcome) {
  const std::string& name = outcome.simulated.name;
  std::string head = name.empty() ? file.name : Format("{}: {}", file.name, name);
  const int rounds = outcome.simulated.rounds;
  if (rounds > 1) head += Format(", medians of {} rounds", rounds);
  head += Format(", {:g} s from seed {}, requests use {:.1f} % of the device\n",
                 Seconds(outcome.simulated.scenario.duration), outcome.simulated.scenario.seed, 100 * outcome.load());
  std::fputs((head + SimulationTables(outcome) + "\n").c_str(), stdout);
}

Status Simulate(const SimulateOptions& options) {
  TANDEM_ASSIGN(const Policies policies, PoliciesByName(options.policies));
  TANDEM_ASSIGN(const SimulationFile file, ReadSimulation(options.scenario, options.changes));
  const bool only_json = options.json_file == "-";
  if (!options.json_file.empty() && !only_json) TANDEM_TRY(OfJson(loadgen::CheckReportFile(options.json_file)));
  std::vector<CaseOutcome> outcomes;
  for (const SimulatedCase& simulated : file.cases) {
    outcomes.push_back(SimulateCase(simulated, policies));
    if (!only_json) Print(file, outcomes.back());
  }
  if (options.json_file.empty()) return {};
  const std::string json = PrettyJson(SimulationJson(file, outcomes)) + "\n";
  if (!only_json) return OfJson(loadgen::WriteReportFile(options.json_file, json));
  std::fputs(json.c_str(), stdout);
  return {};
}

}  // namespace

void AddSimulateCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "simulate", "Say what each co-location policy would come to on a machine that a file describes");
  auto o = std::make_shared<SimulateOptions>();
  command->add_option("scenario", o->scenario, "The file; docs/simulator.md has its form")->required();
  command->add_option("--policies", o->policies, "Only these, with commas between them")->delimiter(',');
  command->add_option("--seed", o->changes.seed, "Another one than the file's")->check(CLI::NonNegativeNumber);
  auto* const seconds = command->add_option("--seconds", o->changes.seconds, "Of a round, in place of the file's")
                            ->check(Between(1e-3, 1e7));
  command->add_option("--requests", o->changes.requests, "About so many in all rounds of a case, in place of seconds")
      ->check(Between(1, 2e7))
      ->excludes(seconds);
  command->add_option("--json", o->json_file, "Write the figures to this file; - prints them in place of tables");
  command->footer(
      "Exits with 0 when it is done, 1 when it failed, 2 for a mistake on the command line or in the file.\n"
      "Examples:\n"
      "  tandem simulate examples/simulate/squeezenet_cpu.json\n"
      "  tandem simulate examples/simulate/herald.json --policies none,op_gate,tandem\n"
      "  tandem simulate scenario.json --seed 7 --requests 1000000 --json -");
  command->callback([o, &exit_code] {
    const Status done = Simulate(*o);
    if (!done) std::fprintf(stderr, "tandem simulate: %s\n", done.error().message.c_str());
    exit_code = done ? kDone : UsageOr(done.error(), kFailed);
  });
}

}  // namespace tandem::cli
