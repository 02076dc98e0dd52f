#include "server/cli/loadgen_convert.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "loadgen/minute_counts.h"
#include "loadgen/report_file.h"
#include "loadgen/trace_file.h"
#include "server/cli/command.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

struct ConvertOptions {
  std::string counts;
  std::string trace;
  std::string form = "azure";
  std::string function;
  bool even = false;
  loadgen::SpreadOptions spread;
};

Status Convert(const ConvertOptions& options) {
  const bool azure = options.form == "azure";
  if (!azure && !options.function.empty()) return Invalid("--function goes with --form azure only");
  TANDEM_TRY(loadgen::CheckReportFile(options.trace));
  TANDEM_ASSIGN(const loadgen::MinuteCounts counts, azure ? loadgen::ReadAzureCounts(options.counts, options.function)
                                                          : loadgen::ReadMinuteCounts(options.counts));
  loadgen::SpreadOptions spread = options.spread;
  if (options.even) spread.spread = loadgen::Spread::kEven;
  TANDEM_ASSIGN(const loadgen::Trace trace, loadgen::SpreadCounts(counts, spread));
  TANDEM_TRY(loadgen::WriteTraceFile(options.trace, trace));
  std::printf("%s: %llu requests in %.1f s\n", options.trace.c_str(), static_cast<unsigned long long>(trace.rows()),
              60.0 * static_cast<double>(counts.size()) / spread.speed);
  return {};
}

}  // namespace

void AddConvertCommand(CLI::App& loadgen, int& exit_code) {
  CLI::App* command = loadgen.add_subcommand("convert", "Make a trace file from counts of requests per minute");
  auto o = std::make_shared<ConvertOptions>();
  command->add_option("COUNTS", o->counts, "The file with the counts")->required();
  command->add_option("TRACE", o->trace, "The trace file to write")->required();
  command->add_option("--form", o->form, "azure (HashOwner,…,1,2,…,1440) or minutes (minute,count)")
      ->check(CLI::IsMember({"azure", "minutes"}))
      ->capture_default_str();
  command->add_option("--function", o->function, "Only the rows of this HashFunction");
  command->add_option("--model", o->spread.model, "Name of the model in the trace; empty: the only one of the run");
  command->add_option("--speed", o->spread.speed, "60 plays a minute in a second")
      ->check(Between(1e-6, loadgen::kMaxSpeed))
      ->capture_default_str();
  command->add_option("--scale", o->spread.scale, "Factor of the counts")
      ->check(Between(1e-9, loadgen::kMaxScale))
      ->capture_default_str();
  command->add_flag("--even", o->even, "Put the requests of a minute at equal distances, not at random");
  command->add_option("--seed", o->spread.seed, "Of the random places")->capture_default_str();
  command->footer(
      "Examples:\n"
      "  tandem loadgen convert invocations_per_function_md.anon.d01.csv trace.csv --speed 60 --scale 0.001\n"
      "  tandem loadgen convert tweets.csv trace.csv --form minutes --speed 30");
  command->callback([o, &exit_code] {
    const Status done = Convert(*o);
    if (!done) std::fprintf(stderr, "tandem loadgen convert: %s\n", done.error().message.c_str());
    exit_code = done ? kDone : UsageOr(done.error(), kFailed);
  });
}

}  // namespace tandem::cli
