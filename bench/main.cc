// tandem-bench: makes the figures that the documentation shows. Run as `./tandem bench …`.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <CLI/CLI.hpp>
#include <json/json.h>
#include <signal.h>
#include <unistd.h>

#include "bench/report.h"
#include "bench/serving.h"
#include "loadgen/report_file.h"

namespace {

using tandem::bench::Report;
using tandem::bench::ServingOptions;
using tandem::loadgen::CheckReportFile;
using tandem::loadgen::WriteReportFile;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

std::atomic<bool> stop{false};
std::atomic<int> stopped_by{0};

void OnSignal(int signal) {
  stopped_by = signal;
  stop = true;
}

int Complain(const std::string& message) {
  std::fprintf(stderr, "tandem bench: %s\n", message.c_str());
  return kFailed;
}

// A line that changes on a terminal, plain lines in a pipe.
void Say(std::string_view text) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, terminal ? "\r\033[K%.*s" : "%.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
}

int Serving(ServingOptions options, const std::string& json_file) {
  // Minutes of measuring must not end at a path that cannot be written.
  if (!json_file.empty()) {
    if (const auto writable = CheckReportFile(json_file); !writable)
      return Complain("--json " + writable.error().message);
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, OnSignal);
  signal(SIGPIPE, SIG_IGN);
  options.say = Say;
  options.stop = &stop;
  const auto report = tandem::bench::RunServing(options);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  if (!report) {
    Complain(report.error().message);
    return stop ? 128 + stopped_by : kFailed;
  }
  std::fputs(tandem::bench::ReportMarkdown(*report).c_str(), stdout);
  if (!json_file.empty()) {
    const auto written = WriteReportFile(json_file, tandem::bench::ReportJson(*report));
    if (!written) return Complain("--json " + written.error().message);
  }
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

int Check(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) return Complain("'" + file + "' cannot be read");
  const auto report = tandem::bench::ParseReport(text);
  if (!report) return Complain("'" + file + "': " + report.error().message);
  if (report->rows.empty()) return Complain("'" + file + "' holds no rows: nothing was measured");
  int missed = 0;
  for (const auto& row : report->rows) {
    if (tandem::bench::Met(row)) continue;
    ++missed;
    std::printf("%s\n", tandem::bench::MissedText(row).c_str());
  }
  if (missed == 0) std::printf("all %zu rows of %s are met\n", report->rows.size(), report->scenario.c_str());
  return missed == 0 ? kDone : kFailed;
}

struct Scenario {
  const char* name;
  const char* what;
  int minutes;
  int quick_minutes;
};

constexpr Scenario kScenarios[] = {{"serving", "time and memory that the server adds to bare ONNX Runtime", 5, 1}};

int List(bool json) {
  if (!json) {
    for (const Scenario& s : kScenarios) {
      std::printf("%-9s %s (about %d min, with --quick %d)\n", s.name, s.what, s.minutes, s.quick_minutes);
    }
    return kDone;
  }
  Json::Value list(Json::arrayValue);
  for (const Scenario& s : kScenarios) {
    Json::Value& item = list.append(Json::objectValue);
    item["name"] = s.name;
    item["what"] = s.what;
    item["minutes"] = s.minutes;
    item["quick_minutes"] = s.quick_minutes;
  }
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "  ";
  std::puts(Json::writeString(builder, list).c_str());
  return kDone;
}

std::filesystem::path OwnFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"tandem bench: makes the figures, side by side, with their spread"};
  app.name("tandem bench");
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tandem bench serving --quick\n"
      "  tandem bench serving --json serving.json\n"
      "  tandem bench check serving.json");
  ServingOptions options;
  options.program = OwnFolder() / "tandem";
  // Set where the environment's packages lie in another root.
  const char* root = std::getenv("TANDEM_ROOT");
  options.squeezenet =
      std::string(root == nullptr ? "" : root) + "/usr/share/libonnx-testdata/data/light/light_squeezenet.onnx";
  options.source = TANDEM_SOURCE_FOLDER;
  std::string json_file;
  std::string check_file;
  CLI::App* serving = app.add_subcommand("serving", "What the server adds to bare ONNX Runtime");
  serving->add_flag("--quick", options.quick, "Fewer and shorter windows: about a minute");
  serving->add_option("--json", json_file, "Also write the figures to this file");
  serving->add_option("--ort-library", options.ort_library, "ONNX Runtime to compare with, instead of the system's");
  serving->footer("Examples:\n  tandem bench serving --quick\n  tandem bench serving --json serving.json");
  CLI::App* check = app.add_subcommand("check", "Exit 1 and list the rows of a file that miss what is promised");
  check->add_option("FILE", check_file, "Written by --json")->required();
  check->footer("Example:\n  tandem bench check serving.json");
  bool list_json = false;
  CLI::App* list = app.add_subcommand("list", "Name the scenarios");
  list->add_flag("--json", list_json, "Print JSON");
  list->footer("Examples:\n  tandem bench list\n  tandem bench list --json");
  try {
    app.parse(argc, argv);
    if (serving->parsed()) return Serving(std::move(options), json_file);
    return check->parsed() ? Check(check_file) : List(list_json);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  } catch (const std::exception& e) {
    return Complain(e.what());
  }
}
