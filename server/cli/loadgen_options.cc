#include "server/cli/loadgen_options.h"

#include <CLI/CLI.hpp>

#include "api/wire/json_text.h"
#include "server/cli/loadgen_spec.h"
#include "server/lifecycle/number_range.h"

namespace tandem::cli {
namespace {

using Limits = LoadLimits;

// Flags of the one model; a specification has its own.
std::vector<CLI::Option*> AddModelFlags(CLI::App& command, LoadgenOptions& o) {
  ModelOptions& m = o.model;
  return {
      command.add_option("--model", m.model, "The model to ask"),
      command.add_option("--model-version", m.version, "Its version; the newest by default"),
      command.add_option("--rate", m.rate, "Requests per second, offered whether or not the server keeps up"),
      command.add_option("--users", m.users, "A closed loop instead: so many users, each waits for its answer"),
      command.add_option("--arrivals", m.arrivals,
                         "poisson (default), constant, bursty:…, ramp:…, steps:…, diurnal:…, trace:FILE; see "
                         "docs/load-generator.md"),
      command.add_option("--slo-ms", m.slo_ms, "The bound to judge by, counted from when a request was due")
          ->check(Between(Limits::kMinSloMs, Limits::kMaxSloMs)),
      command.add_flag("--send-slo,!--no-send-slo", m.send_slo,
                       "Tell the server the SLO (header X-SLO-Ms, parameter slo_ms); default: yes"),
      command.add_option("--batch", m.batch.size, "Rows of a request, where the model has a batch dimension")
          ->check(Between(1, Limits::kMaxBatch))
          ->capture_default_str(),
      command.add_option("--priority", m.priority, "Of every request: 1 is the highest, 0 the model's default")
          ->check(Between(0, Limits::kMaxPriority)),
      command.add_option("--format", m.format, "Of tensors: binary or json")
          ->check(CLI::IsMember({"binary", "json"}))
          ->capture_default_str(),
      command.add_option("-i,--input", o.inputs, "NAME=@FILE.npy or NAME=JSON; of the others, those needed are random"),
      command.add_option("--shape", o.shapes, "NAME:D,D,…: of a random input, or of a flat list"),
      command.add_option("--expect", o.expect,
                         "FILE.npz or OUTPUT=FILE.npy: answers must be so; first: all as the first one"),
      command.add_option("--tolerance", m.expect.tolerance, "By how much floats may differ; default: not in one bit")
          ->check(Between(0, Limits::kMaxTolerance)),
      command.add_option("--check-every", m.expect.every, "Compare only one answer of so many")
          ->check(Between(1, Limits::kMaxCheckEvery))
          ->capture_default_str()};
}

Result<ModelOptions> ModelOfFlags(const LoadgenOptions& o) {
  ModelOptions model = o.model;
  TANDEM_ASSIGN(model.choices, ParseChoices(o.inputs, o.shapes));
  TANDEM_TRY(ParseExpect(o.expect, model.expect));
  return model;
}

template <typename T>
void Override(const std::optional<T>& given, T& value) {
  if (given) value = *given;
}

}  // namespace

void AddLoadFlags(CLI::App& command, LoadgenOptions& o) {
  const std::vector<CLI::Option*> model_flags = AddModelFlags(command, o);
  CLI::Option* spec = command.add_option("--spec", o.spec_file, "A file that says the load on several models");
  for (CLI::Option* flag : model_flags) spec->excludes(flag);
  command.add_option("--duration", o.duration, "Seconds that are measured")
      ->check(Between(Limits::kMinDuration, Limits::kMaxDuration))
      ->default_str("10");
  command.add_option("--warmup", o.warmup, "Seconds before that, which do not count")
      ->check(Between(0, Limits::kMaxWarmup))
      ->default_str("1");
  command.add_option("--percentile", o.percentile, "Share of requests that must keep the SLO")
      ->check(Between(Limits::kMinPercentile, Limits::kMaxPercentile))
      ->default_str("99");
  command.add_option("--confidence", o.confidence, "Of the verdict")
      ->check(Between(Limits::kMinConfidence, Limits::kMaxConfidence))
      ->default_str("0.99");
  command.add_option("--seed", o.seed, "Of arrivals and random inputs")->default_str("1");
  command.add_option("--connections", o.connections, "Most HTTP connections at once; more requests wait for one")
      ->check(Between(1, Limits::kMaxConnections))
      ->default_str("1024");
  command.add_option("--channels", o.channels, "gRPC connections, on which calls take turns")
      ->check(Between(1, Limits::kMaxChannels))
      ->default_str("8");
  command.add_option("--request-timeout", o.request_timeout, "Seconds after which a request has failed")
      ->check(Between(Limits::kMinTimeout, Limits::kMaxTimeout))
      ->default_str("30");
  command.add_option("--metrics-url", o.metrics_url,
                     "Where the server's /metrics is read; by default at --url, if that is HTTP");
  AddClientFlags(command, o.client);
  command.get_option("--url")->each([&o](const std::string&) { o.url_given = true; });
}

Result<RunOptions> ResolveOptions(const LoadgenOptions& o) {
  RunOptions run;
  run.client = o.client;
  if (o.spec_file.empty()) {
    TANDEM_ASSIGN(run.models.emplace_back(), ModelOfFlags(o));
  } else {
    TANDEM_TRY(ReadLoadSpec(o.spec_file, run));
    if (o.url_given) run.client.url = o.client.url;
  }
  if (!o.metrics_url.empty()) run.metrics_url = o.metrics_url;
  Override(o.duration, run.duration);
  Override(o.warmup, run.warmup);
  Override(o.percentile, run.percentile);
  Override(o.confidence, run.confidence);
  Override(o.request_timeout, run.request_timeout);
  Override(o.seed, run.seed);
  Override(o.connections, run.connections);
  Override(o.channels, run.channels);
  return run;
}

Status ParseExpect(const std::vector<std::string>& texts, ExpectOptions& expect) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (text == "first") {
      expect.first = true;
    } else if (equals == std::string::npos && text.ends_with(".npz")) {
      if (!expect.npz.empty()) return Invalid("{} names two files: '{}' and '{}'", expect.where, expect.npz, text);
      expect.npz = text;
    } else if (equals != std::string::npos && equals > 0 && text.ends_with(".npy")) {
      const std::string output = text.substr(0, equals);
      for (const auto& [name, file] : expect.files) {
        if (name == output) return Invalid("{} names output '{}' twice", expect.where, Excerpt(output));
      }
      expect.files.emplace_back(output, text.substr(equals + 1));
    } else {
      return Invalid("{} is '{}'; it must be first, FILE.npz or OUTPUT=FILE.npy", expect.where, Excerpt(text));
    }
  }
  const int ways = (expect.first ? 1 : 0) + (expect.npz.empty() ? 0 : 1) + (expect.files.empty() ? 0 : 1);
  if (ways > 1) return Invalid("{}: first, FILE.npz and OUTPUT=FILE.npy exclude one another", expect.where);
  return {};
}

}  // namespace tandem::cli
