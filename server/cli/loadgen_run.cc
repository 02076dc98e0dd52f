#include "server/cli/loadgen_run.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <signal.h>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "loadgen/metrics_watch.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::seconds kWatchInterval{1};
constexpr std::chrono::seconds kMetricsTimeout{5};

// The command line as it was typed, without secrets: it stands in reports, which people hand on.
std::string CommandLine() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::string line;
  bool secret = false;
  for (std::string word; std::getline(stream, word, '\0');) {
    const bool joined = word.starts_with("--token=");
    if (line.empty()) {
      word = "tandem";
    } else if (secret || joined) {
      word = joined ? "--token=..." : "...";
    } else if (word.find_first_of(" \t\n'\"$&|;<>()*?[]#~\\") != std::string::npos) {
      word = Format("'{}'", word);
    }
    secret = word == "--token";
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

// Nothing where the server has no metrics, or none that are known here.
loadgen::ServerMetrics ReadMetrics(const PreparedLoad& prepared) {
  if (!prepared.metrics) return {};
  return loadgen::ReadServerMetrics(*prepared.metrics, kMetricsTimeout).value_or(loadgen::ServerMetrics{});
}

std::string Now() {
  return Format("{:%FT%TZ}", std::chrono::floor<std::chrono::seconds>(RealClock::Instance().WallNow()));
}

}  // namespace

Result<loadgen::RunReport> RunPrepared(const PreparedLoad& prepared, Interruption& interruption, LoadgenView& view,
                                       loadgen::RequestCsv* csv) {
  const loadgen::ServerMetrics before = ReadMetrics(prepared);
  std::unique_ptr<loadgen::TrainingWatch> watch;
  // Only our own server trains.
  if (before.ours) watch = std::make_unique<loadgen::TrainingWatch>(*prepared.metrics, kWatchInterval);
  loadgen::LoadHooks hooks;
  hooks.stop = &interruption.flag();
  hooks.on_progress = [&](const loadgen::LoadProgress& progress) {
    view.Update(progress, watch ? watch->HeldLately() : std::nullopt);
    // Whoever read the output has gone.
    if (std::ferror(stdout) != 0) interruption.Raise(SIGPIPE);
  };
  if (csv != nullptr) hooks.on_request = [csv](const loadgen::JudgedRequest& request) { csv->Add(request); };
  TANDEM_ASSIGN(loadgen::LoadReport load, loadgen::RunLoad(prepared.spec, hooks));
  TANDEM_ASSIGN(loadgen::RunReport report,
                loadgen::JudgeRun(std::move(load), prepared.percentile, prepared.confidence));
  report.date = Now();
  report.command = CommandLine();
  report.url = prepared.url;
  report.server = prepared.server;
  report.server_view = loadgen::Between(before, ReadMetrics(prepared));
  if (watch) report.training = watch->Finish();
  view.EndLine();
  return report;
}

}  // namespace tandem::cli
