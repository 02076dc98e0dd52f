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
#include <signal.h>
#include <unistd.h>

#include "bench/report.h"
#include "bench/serving.h"

namespace {

using tandem::bench::Report;
using tandem::bench::ServingOptions;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

std::atomic<bool> stop{false};

void OnSignal(int) {
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
  // Minutes of measuring must not end at a path that cannot be written; what the file holds stays until then.
  if (!json_file.empty() && !std::ofstream(json_file, std::ios::app)) {
    return Complain("--json '" + json_file + "' cannot be written");
  }
  signal(SIGINT, OnSignal);
  signal(SIGTERM, OnSignal);
  signal(SIGPIPE, SIG_IGN);
  options.say = Say;
  options.stop = &stop;
  const auto report = tandem::bench::RunServing(options);
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  if (!report) return Complain(report.error().message);
  std::fputs(tandem::bench::ReportMarkdown(*report).c_str(), stdout);
  if (!json_file.empty()) {
    std::ofstream json(json_file, std::ios::trunc);
    json << tandem::bench::ReportJson(*report);
    if (!json.flush()) return Complain("--json '" + json_file + "' cannot be written");
  }
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

int Check(const std::string& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad()) return Complain("'" + file + "' cannot be read");
  const auto report = tandem::bench::ParseReport(text);
  if (!report) return Complain("'" + file + "': " + report.error().message);
  int missed = 0;
  for (const auto& row : report->rows) {
    if (tandem::bench::Met(row)) continue;
    ++missed;
    std::printf("%s\n", tandem::bench::MissedText(row).c_str());
  }
  if (missed == 0) std::printf("all %zu rows of %s are met\n", report->rows.size(), report->scenario.c_str());
  return missed == 0 ? kDone : kFailed;
}

int List() {
  std::puts("serving   time and memory that the server adds to bare ONNX Runtime (about 5 minutes, --quick 1 minute)");
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
  CLI::App* check = app.add_subcommand("check", "Exit 1 and list the rows of a file that miss what is promised");
  check->add_option("FILE", check_file, "Written by --json")->required();
  app.add_subcommand("list", "Name the scenarios");
  try {
    app.parse(argc, argv);
    if (serving->parsed()) return Serving(std::move(options), json_file);
    return check->parsed() ? Check(check_file) : List();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  } catch (const std::exception& e) {
    return Complain(e.what());
  }
}
