// tandem-bench: makes the figures that the documentation shows. Run as `./tandem bench …`.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <json/json.h>
#include <signal.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "bench/kinds.h"
#include "bench/machine.h"
#include "bench/null_server.h"
#include "bench/open_files.h"
#include "bench/report.h"
#include "bench/runner.h"
#include "bench/scenario.h"
#include "bench/temporary_folder.h"
#include "loadgen/report_file.h"
#include "profiler/machine.h"
#include "runtimes/onnx/ort_library.h"

namespace {

using namespace tandem;
using namespace tandem::bench;
namespace fs = std::filesystem;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNullServerFiles = 100'000;

std::atomic<bool> stop{false};
std::atomic<int> stopped_by{0};
NullServer* null_server = nullptr;  // For the handler; set before the signals are.

void OnSignal(int signal) {
  stopped_by = signal;
  stop = true;
  if (null_server != nullptr) null_server->Stop();
}

void CatchSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, OnSignal);
  signal(SIGPIPE, SIG_IGN);
}

int Complain(const std::string& message, int code = kFailed) {
  std::fprintf(stderr, "tandem bench: %s\n", message.c_str());
  return code;
}

// A line that changes on a terminal, plain lines in a pipe.
void Say(std::string_view text) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, terminal ? "\r\033[K%.*s" : "%.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
}

fs::path SourceFolder() {
  return TANDEM_SOURCE_FOLDER;
}

fs::path ScenarioFolder() {
  return SourceFolder() / "bench" / "scenarios";
}

// The program's own file.
fs::path OwnFile() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

struct RunOptions {
  std::string scenario;  // A name, or the path of a file.
  std::string json_file;
  std::string ort_library;
  std::optional<double> quota;
  Selection selection;
};

// A scenario of ours by name, or anybody's by path.
Result<fs::path> FindScenario(const std::string& text) {
  if (text.contains('/') || text.ends_with(".json")) return fs::path(text);
  std::string names;
  for (const fs::path& file : ScenarioFiles(ScenarioFolder())) {
    if (file.stem() == text) return file;
    names += (names.empty() ? "" : ", ") + file.stem().string();
  }
  return Invalid("there is no scenario '{}'; there are {}, and paths such as ./mine.json", text, names);
}

BenchContext MakeContext(const RunOptions& options, const Scenario& scenario, const fs::path& file,
                         const fs::path& work) {
  // Set where the environment's packages lie in another root.
  const char* const root = std::getenv("TANDEM_ROOT");
  BenchContext context;
  context.peers = scenario.peers;
  context.program = OwnFile().parent_path() / "tandem";
  context.bench = OwnFile();
  context.peer_folder = SourceFolder() / "bench" / "peers";
  context.folder = fs::absolute(file).parent_path();
  context.test_models = std::string(root == nullptr ? "" : root) + "/usr/share/libonnx-testdata/data/light";
  context.work = work;
  context.ort_library = options.ort_library;
  context.threads = UsableCores();
  context.say = Say;
  context.stop = &stop;
  return context;
}

std::string OrtVersion(const std::string& library) {
  const auto opened = OrtLibrary::Open(library);
  return opened ? std::string((*opened)->version()) : "unknown";
}

Result<Report> Make(const RunOptions& options, const Scenario& scenario, const fs::path& file) {
  TANDEM_ASSIGN(const auto work, TemporaryFolder::Make());
  BenchContext context = MakeContext(options, scenario, file, work->path());
  const std::string date = IsoDate(RealClock::Instance().WallNow());
  TANDEM_ASSIGN(Report report, RunScenario(scenario, options.selection, context));
  report.date = date;
  report.commit = CommitOf(SourceFolder());
  report.machine = DescribeMachine();
  report.machine.onnx_runtime = OrtVersion(options.ort_library);
  return report;
}

int Run(const RunOptions& options) {
  const auto file = FindScenario(options.scenario);
  if (!file) return Complain(file.error().message, kUsage);
  auto scenario = ReadScenario(*file, AllKinds(), options.quota);
  if (!scenario) return Complain(scenario.error().message, kUsage);
  if (options.selection.quick) KeepQuick(*scenario);
  if (const auto chosen = CheckSelection(*scenario, options.selection); !chosen)
    return Complain(chosen.error().message, kUsage);
  // Minutes of measuring must not end at a path that cannot be written.
  if (!options.json_file.empty()) {
    if (const auto writable = loadgen::CheckReportFile(options.json_file); !writable)
      return Complain("--json " + writable.error().message);
  }
  CatchSignals();
  const auto report = Make(options, *scenario, *file);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  if (!report) {
    Complain(report.error().message);
    return stop ? 128 + stopped_by : kFailed;
  }
  std::fputs(ReportMarkdown(*report).c_str(), stdout);
  if (!options.json_file.empty()) {
    const auto written = loadgen::WriteReportFile(options.json_file, ReportJson(*report));
    if (!written) return Complain("--json " + written.error().message);
  }
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

int Check(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) return Complain("'" + file + "' cannot be read");
  const auto report = ParseReport(text);
  if (!report) return Complain("'" + file + "': " + report.error().message);
  if (report->rows.empty()) return Complain("'" + file + "' holds no rows: nothing was measured");
  int missed = 0;
  int not_run = 0;
  for (const Row& row : report->rows) {
    if (Met(row)) continue;
    std::printf("%s\n", MissedText(row).c_str());
    ++(Missed(row) ? missed : not_run);
  }
  if (missed > 0) return kFailed;
  if (not_run > 0) {
    std::printf("the other %zu rows of %s are met\n", report->rows.size() - static_cast<std::size_t>(not_run),
                report->scenario.c_str());
  } else {
    std::printf("all %zu rows of %s are met\n", report->rows.size(), report->scenario.c_str());
  }
  return kDone;
}

int List(bool json) {
  Json::Value list(Json::arrayValue);
  for (const fs::path& file : ScenarioFiles(ScenarioFolder())) {
    const auto scenario = ReadScenario(file, AllKinds());
    if (!scenario) return Complain(scenario.error().message);
    if (!json) {
      std::printf("%-14s %s (about %g min, with --quick %g)\n", scenario->name.c_str(), scenario->what.c_str(),
                  scenario->full.minutes, scenario->quick.minutes);
    }
    Json::Value& item = list.append(Json::objectValue);
    item["name"] = scenario->name;
    item["what"] = scenario->what;
    item["minutes"] = scenario->full.minutes;
    item["quick_minutes"] = scenario->quick.minutes;
  }
  if (!json) return kDone;
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "  ";
  std::puts(Json::writeString(builder, list).c_str());
  return kDone;
}

int ServeNothing(const NullServer::Options& options) {
  AllowOpenFiles(kNullServerFiles);
  const auto server = NullServer::Make(options);
  if (!server) return Complain(server.error().message);
  null_server = server->get();
  CatchSignals();
  const Status ran = null_server->Run();
  return ran ? kDone : Complain(ran.error().message);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"tandem bench: makes the figures, side by side, with their spread"};
  app.name("tandem bench");
  app.footer(
      "Examples:\n"
      "  tandem bench serving --quick\n"
      "  tandem bench serving --json serving.json\n"
      "  tandem bench colocation --quota 1\n"
      "  tandem bench ./mine.json --only throughput\n"
      "  tandem bench check serving.json\n"
      "  tandem bench peers install     the Python servers that scenarios compare with");
  RunOptions options;
  app.add_option("SCENARIO", options.scenario, "A name that list shows, or the path of a scenario file");
  app.add_flag("--quick", options.selection.quick, "Fewer and shorter windows: for a first look");
  app.add_option("--json", options.json_file, "Also write the figures to this file");
  app.add_option("--only", options.selection.only, "Only rows whose \"metric: case\" contains one of these texts");
  app.add_option("--quota", options.quota,
                 "Put each server with its trainers into a control group of so many cores' worth of CPU time, where "
                 "training is beside requests")
      ->type_name("CORES")
      ->check(CLI::PositiveNumber);
  app.add_option("--ort-library", options.ort_library, "ONNX Runtime to compare with, instead of the system's");
  std::string check_file;
  CLI::App* check = app.add_subcommand("check", "Exit 1 and list the rows of a file that miss what is promised");
  check->add_option("FILE", check_file, "Written by --json")->required();
  check->footer("Example:\n  tandem bench check serving.json");
  bool list_json = false;
  CLI::App* list = app.add_subcommand("list", "Name the scenarios");
  list->add_flag("--json", list_json, "Print JSON");
  list->footer("Examples:\n  tandem bench list\n  tandem bench list --json");
  // For scenarios, which start it as a peer.
  NullServer::Options null_options;
  CLI::App* null = app.add_subcommand("null-server", "Answer every request with the same few bytes")->group("");
  null->add_option("--port", null_options.port, "Where to listen; 0 is a free port")->check(CLI::Range(0, 65535));
  null->add_flag("--hold", null_options.hold, "Answer nothing but GET");
  try {
    app.parse(argc, argv);
    if (null->parsed()) return ServeNothing(null_options);
    if (check->parsed()) return Check(check_file);
    if (list->parsed()) return List(list_json);
    if (options.scenario.empty()) return Complain("which scenario? `tandem bench list` names them", kUsage);
    return Run(options);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  } catch (const std::exception& e) {
    return Complain(e.what());
  }
}
