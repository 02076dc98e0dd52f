#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

#include "loadgen/rate_search.h"
#include "loadgen/report_file.h"
#include "loadgen/run_report.h"
#include "server/cli/command.h"
#include "server/cli/interruption.h"
#include "server/cli/loadgen_compare.h"
#include "server/cli/loadgen_convert.h"
#include "server/cli/loadgen_options.h"
#include "server/cli/loadgen_prepare.h"
#include "server/cli/loadgen_run.h"
#include "server/cli/loadgen_view.h"

namespace tandem::cli {
namespace {

struct CommandOptions {
  LoadgenOptions load;
  std::string json_file, csv_file, html_file;
  bool find_max = false;
  double highest = 100'000;
};

// Names the flag that a file came from.
Status OfFlag(const char* flag, const Status& status) {
  if (status) return {};
  return Fail(status.error().code, "{} {}", flag, status.error().message);
}

int ExitCode(const loadgen::RunReport& report) {
  switch (loadgen::ResultOf(report)) {
    case loadgen::RunResult::kPass: return kDone;
    case loadgen::RunResult::kFail: return kFailed;
    case loadgen::RunResult::kInconclusive:
    case loadgen::RunResult::kInvalid: return kUndecided;
    case loadgen::RunResult::kNone: break;
  }
  if (report.load.partial) return kUndecided;
  for (const loadgen::ModelReport& model : report.load.models) {
    if (model.counts.ok == 0 || model.counts.failed > 0) return kFailed;
  }
  return kDone;
}

// A file that could be written before the run and cannot now is no mistake on the command line.
Status WriteReport(const char* flag, const std::string& file, const std::string& text) {
  if (file.empty()) return {};
  const Status written = loadgen::WriteReportFile(file, text);
  if (written) return {};
  return Fail(ErrorCode::kUnavailable, "{} {}", flag, written.error().message);
}

Status WriteReports(const loadgen::RunReport& report, const CommandOptions& options) {
  const Status json = WriteReport("--json", options.json_file, loadgen::RunReportJson(report) + "\n");
  TANDEM_TRY(WriteReport("--html", options.html_file, loadgen::RunReportHtml(report)));
  return json;
}

Result<int> RunOneLoad(const CommandOptions& options, const PreparedLoad& prepared, Interruption& interruption) {
  std::unique_ptr<loadgen::RequestCsv> csv;
  if (!options.csv_file.empty()) {
    std::vector<std::string> names;
    for (const loadgen::ModelLoad& model : prepared.spec.models) {
      names.push_back(model.name.empty() ? model.model : model.name);
    }
    auto created = loadgen::RequestCsv::Create(options.csv_file, std::move(names));
    if (!created) return Fail(created.error().code, "--csv {}", created.error().message);
    csv = *std::move(created);
  }
  LoadgenView view;
  TANDEM_ASSIGN(const loadgen::RunReport report, RunPrepared(prepared, interruption, view, csv.get()));
  view.Summarize(report);
  const Status written = WriteReports(report, options);
  if (csv) TANDEM_TRY(OfFlag("--csv", csv->Close()));
  TANDEM_TRY(written);
  return ExitCode(report);
}

// The rate of the one model is what is searched for.
Result<int> FindMax(const CommandOptions& options, PreparedLoad prepared, Interruption& interruption) {
  if (prepared.spec.models.size() != 1) return Invalid("--find-max searches for the rate of one model, not of a mix");
  loadgen::ModelLoad& model = prepared.spec.models[0];
  if (!model.slo) return Invalid("--find-max needs an SLO: without a bound every rate passes");
  const loadgen::ArrivalKind kind = model.arrivals.kind;
  if (kind != loadgen::ArrivalKind::kPoisson && kind != loadgen::ArrivalKind::kConstant) {
    return Invalid("--find-max needs --rate to begin with, and --arrivals poisson or constant");
  }
  TANDEM_ASSIGN(loadgen::RateSearch search,
                loadgen::RateSearch::Create({.start = model.arrivals.rate, .highest = options.highest}));
  LoadgenView view;
  std::optional<loadgen::RunReport> last;
  while (const std::optional<double> rate = search.Next()) {
    std::puts(search.Describe().c_str());
    model.arrivals.rate = *rate;
    TANDEM_ASSIGN(last, RunPrepared(prepared, interruption, view, nullptr));
    if (interruption.raised()) {
      std::puts("PARTIAL: the search was stopped before its time.");
      return kUndecided;
    }
    if (const loadgen::ModelReport& asked = last->load.models[0]; asked.wrong > 0) {
      std::printf("FAIL: %s\n", asked.first_wrong.c_str());
      TANDEM_TRY(WriteReports(*last, options));
      return kFailed;
    }
    // A rate that the generator cannot make is none that the server bears.
    const bool valid = last->problems.empty();
    for (const std::string& problem : last->problems) std::printf("  INVALID: %s\n", problem.c_str());
    std::printf("  %s\n", loadgen::VerdictText(*last->verdicts[0]).c_str());
    TANDEM_TRY(search.Observe(*rate, valid ? last->verdicts[0]->kind : loadgen::VerdictKind::kInconclusive));
  }
  std::puts(search.Describe().c_str());
  if (last) TANDEM_TRY(WriteReports(*last, options));
  switch (search.result().outcome) {
    case loadgen::RateOutcome::kConfirmed:
    case loadgen::RateOutcome::kPassesAtHighest: return kDone;
    case loadgen::RateOutcome::kFailsAtLowest: return kFailed;
    default: return kUndecided;
  }
}

Status CheckOptions(const CommandOptions& options) {
  for (const auto& [flag, file] :
       {std::pair{"--json", &options.json_file}, {"--csv", &options.csv_file}, {"--html", &options.html_file}}) {
    if (!file->empty()) TANDEM_TRY(OfFlag(flag, loadgen::CheckReportFile(*file)));
  }
  if (!options.find_max) return {};
  if (options.load.spec_file.empty() && options.load.model.slo_ms <= 0) {
    return Invalid("--find-max needs --slo-ms: without a bound every rate passes");
  }
  if (!options.csv_file.empty()) return Invalid("--csv does not go with --find-max, which makes many runs");
  return {};
}

Result<int> Loadgen(const CommandOptions& options) {
  TANDEM_TRY(CheckOptions(options));
  ::signal(SIGPIPE, SIG_IGN);
  Interruption interruption;
  TANDEM_ASSIGN(PreparedLoad prepared, PrepareLoad(options.load));
  if (options.find_max) return FindMax(options, std::move(prepared), interruption);
  return RunOneLoad(options, prepared, interruption);
}

}  // namespace

void AddLoadgenCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("loadgen", "Send load to a server and judge whether it keeps its SLO");
  auto o = std::make_shared<CommandOptions>();
  AddLoadFlags(*command, o->load);
  command->add_option("--json", o->json_file, "Write the report to this file");
  command->add_option("--csv", o->csv_file, "Write every request to this file");
  command->add_option("--html", o->html_file, "Write a page with plots to this file");
  command->add_flag("--find-max", o->find_max, "Search for the highest rate that passes, beginning at --rate");
  command->add_option("--highest-rate", o->highest, "Where that search ends")->capture_default_str();
  command->footer(
      "Exits with 0 when the run passed, 1 when it failed, 2 for a mistake on the command line, 3 when it is\n"
      "inconclusive, invalid or was interrupted.\n"
      "Examples:\n"
      "  tandem loadgen --model squeezenet --rate 30 --duration 20 --slo-ms 100 --html report.html\n"
      "  tandem loadgen --model squeezenet --users 4 --duration 5\n"
      "  tandem loadgen --model squeezenet --arrivals bursty:on=100,off=5,on_s=1,off_s=4 --slo-ms 100\n"
      "  tandem loadgen --model squeezenet --rate 20 --slo-ms 100 --find-max\n"
      "  tandem loadgen --model squeezenet --rate 20 --expect first --url grpc://127.0.0.1:8001\n"
      "  tandem loadgen --spec mix.json --html report.html\n"
      "  tandem loadgen compare sides.json\n"
      "  tandem loadgen convert counts.csv trace.csv --form minutes");
  AddCompareCommand(*command, exit_code);
  AddConvertCommand(*command, exit_code);
  command->callback([o, command, &exit_code] {
    if (!command->get_subcommands().empty()) return;  // It has done its work.
    // Each line as it comes, also in a pipe.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const Result<int> done = Loadgen(*o);
    if (!done) std::fprintf(stderr, "tandem loadgen: %s\n", done.error().message.c_str());
    exit_code = done ? *done : UsageOr(done.error(), kFailed);
  });
}

}  // namespace tandem::cli
