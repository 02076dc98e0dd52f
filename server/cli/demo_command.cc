#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include <signal.h>

#include "loadgen/report_file.h"
#include "server/cli/command.h"
#include "server/cli/demo_models.h"
#include "server/cli/demo_run.h"
#include "server/cli/interruption.h"
#include "server/lifecycle/number_range.h"
#include "server/log/log.h"

namespace tandem::cli {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<int> Demo(const DemoOptions& options) {
  if (!options.json_file.empty()) {
    const Status writable = loadgen::CheckReportFile(options.json_file);
    if (!writable) return Fail(writable.error().code, "--json {}", writable.error().message);
  }
  ::signal(SIGPIPE, SIG_IGN);
  Interruption interruption;
  TANDEM_ASSIGN(const ScratchFolder scratch, ScratchFolder::Create());
  interruption.BeforeLeavingAtOnce([path = scratch.path()] {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  });
  return DemoRun(options, scratch, interruption).Run();
}

}  // namespace

void AddDemoCommand(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("demo", "Serve sample models, send them load, train one meanwhile, and show how all do");
  auto o = std::make_shared<DemoOptions>();
  // Where the package libonnx-testdata puts its models. TANDEM_ROOT is set where that package lies in another root.
  o->samples = Variable("TANDEM_ROOT") + "/usr/share/libonnx-testdata/data/light";
  o->launcher = Variable("TANDEM_LAUNCHER");
  command->add_option("--seconds", o->seconds, "How long to send load; the training comes after")
      ->check(Between(1, 86400))
      ->capture_default_str();
  command->add_option("--models", o->models, "Which of the sample models")->delimiter(',')->capture_default_str();
  command->add_option("--load", o->load, "Share of the device's time to ask for")
      ->check(Between(0.01, 10))
      ->capture_default_str();
  command->add_option("--samples", o->samples, "Folder of the sample models")->capture_default_str();
  command->add_option("--json", o->json_file, "Write the report to this file");
  command->add_option("--training", o->training, "Draw digits, train a model on them under load, and publish it")
      ->capture_default_str();
  command->add_option("--training-steps", o->training_steps, "How long to train")
      ->check(Between(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--colocation", o->colocation, "How training stands behind requests, as `tandem serve` has it")
      ->capture_default_str();
  command->add_option("--compare", o->compare, "Show what happens beside training that nobody manages, too")
      ->capture_default_str();
  command->add_option("--trainer", o->trainer, "The trainer program, if it is not beside this one");
  command->footer(
      "Exits with 1 when a request failed, none was answered, or the training did not lead to a better version.\n"
      "Examples:\n  tandem demo\n  tandem demo --training false --seconds 30 --models squeezenet,densenet121\n"
      "  tandem demo --json report.json");
  command->callback([o, &exit_code] {
    SetUpLog(LogLevel::kWarning, LogFormat::kText);
    // Each line as it comes, also in a pipe.
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const Result<int> done = Demo(*o);
    FlushLog();
    if (!done) std::fprintf(stderr, "tandem demo: %s\n", done.error().message.c_str());
    exit_code = done.value_or(kFailed);
  });
}

}  // namespace tandem::cli
