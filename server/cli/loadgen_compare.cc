#include "server/cli/loadgen_compare.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <json/value.h>
#include <signal.h>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "loadgen/comparison.h"
#include "loadgen/report_file.h"
#include "server/cli/command.h"
#include "server/cli/interruption.h"
#include "server/cli/loadgen_options.h"
#include "server/cli/loadgen_prepare.h"
#include "server/cli/loadgen_run.h"
#include "server/cli/loadgen_view.h"

namespace tandem::cli {
namespace {

constexpr std::uint64_t kMaxRepetitions = 1000;
constexpr std::size_t kMaxSides = 20;

struct Side {
  std::string name;
  LoadgenOptions options;
  PreparedLoad prepared;
};

struct Spec {
  std::size_t repetitions = 8;
  std::uint64_t seed = 1;
  double confidence = 0.95;
  std::vector<Side> sides;  // Each is compared with the first.
};

// One figure of a run that sides are compared by.
struct Figure {
  const char* name;
  double (*of)(const loadgen::ModelReport&);
};

constexpr Figure kFigures[] = {
    {"p50 ms", [](const loadgen::ModelReport& m) { return Ms(m.latency.Percentile(50)); }},
    {"p99 ms", [](const loadgen::ModelReport& m) { return Ms(m.latency.Percentile(99)); }},
    {"answered in time per second", [](const loadgen::ModelReport& m) { return m.goodput; }},
};

Status CheckMembers(const Json::Value& object, std::initializer_list<std::string_view> known, std::string_view where) {
  for (const std::string& name : object.getMemberNames()) {
    if (!std::ranges::contains(known, name)) return Invalid("{}: '{}' is not known", where, Excerpt(name));
  }
  return {};
}

Result<std::vector<std::string>> Arguments(const Json::Value& list, const std::string& where) {
  std::vector<std::string> arguments;
  if (list.isNull()) return arguments;
  if (!list.isArray()) return Invalid("{} must be a list of texts", where);
  for (const Json::Value& item : list) {
    if (!item.isString()) return Invalid("{} must be a list of texts", where);
    arguments.push_back(item.asString());
  }
  return arguments;
}

// A side says its load in the flags of `tandem loadgen`, after those that all sides have.
Result<Side> MakeSide(const Json::Value& json, std::vector<std::string> arguments, const std::string& where) {
  if (!json.isObject()) return Invalid("{} must be an object", where);
  TANDEM_TRY(CheckMembers(json, {"name", "arguments"}, where));
  if (!json["name"].isString() || json["name"].asString().empty()) return Invalid("{}.name must be a text", where);
  Side side{.name = json["name"].asString(), .options = {}, .prepared = {}};
  TANDEM_ASSIGN(const std::vector<std::string> own, Arguments(json["arguments"], where + ".arguments"));
  arguments.insert(arguments.end(), own.begin(), own.end());
  CLI::App flags;
  AddLoadFlags(flags, side.options);
  for (CLI::Option* option : flags.get_options()) {
    // What a side says wins over what all say.
    if (option->get_items_expected_max() == 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  try {
    std::ranges::reverse(arguments);  // As CLI11 wants them.
    flags.parse(arguments);
  } catch (const CLI::ParseError& e) {
    return Invalid("{} ('{}'): {}", where, Excerpt(side.name), e.what());
  }
  return side;
}

Result<Spec> ParseSpec(const std::string& file) {
  TANDEM_ASSIGN(const Json::Value json, ReadJsonFile(file));
  TANDEM_TRY(CheckMembers(json, {"repetitions", "seed", "confidence", "arguments", "sides"}, "the specification"));
  Spec spec;
  if (json.isMember("repetitions")) {
    if (!json["repetitions"].isUInt64() || json["repetitions"].asUInt64() < 1 ||
        json["repetitions"].asUInt64() > kMaxRepetitions) {
      return Invalid("repetitions must be a whole number from 1 to {}", kMaxRepetitions);
    }
    spec.repetitions = json["repetitions"].asUInt64();
  }
  if (json.isMember("seed")) {
    if (!json["seed"].isUInt64()) return Invalid("seed must be a whole number");
    spec.seed = json["seed"].asUInt64();
  }
  if (json.isMember("confidence")) {
    if (!json["confidence"].isNumeric()) return Invalid("confidence must be a number");
    spec.confidence = json["confidence"].asDouble();
  }
  TANDEM_ASSIGN(const std::vector<std::string> common, Arguments(json["arguments"], "arguments"));
  const Json::Value& sides = json["sides"];
  if (!sides.isArray() || sides.size() < 2 || sides.size() > kMaxSides) {
    return Invalid("sides must be a list of 2 to {}", kMaxSides);
  }
  for (Json::ArrayIndex i = 0; i < sides.size(); ++i) {
    TANDEM_ASSIGN(Side side, MakeSide(sides[i], common, Format("sides[{}]", i)));
    if (std::ranges::contains(spec.sides, side.name, &Side::name)) {
      return Invalid("sides[{}].name '{}' is given twice", i, Excerpt(side.name));
    }
    spec.sides.push_back(std::move(side));
  }
  // A wrong option is told before minutes of load.
  TANDEM_TRY(loadgen::Compare(std::vector<loadgen::PairedSamples>{{{1.0}, {1.0}}}, {.confidence = spec.confidence}));
  return spec;
}

// samples[side][figure][repetition]
using Samples = std::vector<std::vector<std::vector<double>>>;

Status RunAll(Spec& spec, Interruption& interruption, Samples& samples) {
  const auto order = loadgen::RunOrder(spec.sides.size(), spec.repetitions, spec.seed);
  for (std::size_t repetition = 0; repetition < order.size(); ++repetition) {
    for (const std::size_t number : order[repetition]) {
      Side& side = spec.sides[number];
      std::printf("repetition %zu of %zu: %s\n", repetition + 1, order.size(), side.name.c_str());
      LoadgenView view;
      TANDEM_ASSIGN(const loadgen::RunReport report, RunPrepared(side.prepared, interruption, view, nullptr));
      if (interruption.raised()) return {};
      for (const std::string& problem : report.problems) std::printf("  INVALID: %s\n", problem.c_str());
      const loadgen::ModelReport& model = report.load.models[0];
      if (model.wrong > 0) {
        return Fail(ErrorCode::kInternal, "side '{}' gave a wrong answer: {}", side.name, model.first_wrong);
      }
      if (model.counts.ok == 0) return Fail(ErrorCode::kUnavailable, "side '{}' answered nothing in time", side.name);
      for (std::size_t i = 0; i < std::size(kFigures); ++i) samples[number][i].push_back(kFigures[i].of(model));
    }
  }
  return {};
}

Result<std::string> Conclude(const Spec& spec, const Samples& samples) {
  std::string json = "{\"sides\":[";
  for (const Side& side : spec.sides) json += (&side == &spec.sides.front() ? "" : ",") + JsonString(side.name);
  json += Format("],\"repetitions\":{},\"comparisons\":[", samples[0][0].size());
  bool first = true;
  for (std::size_t number = 1; number < spec.sides.size(); ++number) {
    for (std::size_t i = 0; i < std::size(kFigures); ++i) {
      std::vector<loadgen::PairedSamples> pairs;
      for (std::size_t r = 0; r < samples[number][i].size(); ++r) {
        pairs.push_back({.a = {samples[0][i][r]}, .b = {samples[number][i][r]}});
      }
      TANDEM_ASSIGN(const loadgen::Comparison comparison,
                    loadgen::Compare(pairs, {.confidence = spec.confidence, .seed = spec.seed}));
      const std::string text = loadgen::ComparisonText(comparison, spec.sides[0].name, spec.sides[number].name);
      std::printf("%s: %s\n", kFigures[i].name, text.c_str());
      json += Format(R"({}{{"figure":{},"a":{},"b":{},"ratio":{},"low":{},"high":{},"difference":"{}","text":{}}})",
                     first ? "" : ",", JsonString(kFigures[i].name), JsonString(spec.sides[0].name),
                     JsonString(spec.sides[number].name), comparison.ratio,
                     comparison.interval ? std::to_string(comparison.interval->low) : "null",
                     comparison.interval ? std::to_string(comparison.interval->high) : "null",
                     loadgen::DifferenceName(comparison.difference), JsonString(text));
      first = false;
    }
  }
  return json + "]}\n";
}

Result<int> Compare(const std::string& file, const std::string& json_file) {
  if (!json_file.empty()) TANDEM_TRY(loadgen::CheckReportFile(json_file));
  TANDEM_ASSIGN(Spec spec, ParseSpec(file));
  ::signal(SIGPIPE, SIG_IGN);
  Interruption interruption;
  for (Side& side : spec.sides) {
    auto prepared = PrepareLoad(side.options);
    if (!prepared) return Fail(prepared.error().code, "side '{}': {}", side.name, prepared.error().message);
    side.prepared = *std::move(prepared);
    if (side.prepared.spec.models.size() != 1) {
      return Invalid("side '{}' loads {} models; sides are compared by one", Excerpt(side.name),
                     side.prepared.spec.models.size());
    }
  }
  Samples samples(spec.sides.size(), std::vector<std::vector<double>>(std::size(kFigures)));
  TANDEM_TRY(RunAll(spec, interruption, samples));
  if (interruption.raised()) {
    std::puts("PARTIAL: stopped before its time; nothing is compared.");
    return kUndecided;
  }
  TANDEM_ASSIGN(const std::string json, Conclude(spec, samples));
  if (!json_file.empty()) TANDEM_TRY(loadgen::WriteReportFile(json_file, json));
  return kDone;
}

}  // namespace

void AddCompareCommand(CLI::App& loadgen, int& exit_code) {
  CLI::App* command = loadgen.add_subcommand("compare", "Two or more loads in turn, and how they relate");
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<std::string>();
  command->add_option("SPEC", *file, "What to compare: docs/load-generator.md has the form")->required();
  command->add_option("--json", *json, "Write the result to this file");
  command->footer("Example:\n  tandem loadgen compare sides.json --json result.json");
  command->callback([file, json, &exit_code] {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const Result<int> done = Compare(*file, *json);
    if (!done) std::fprintf(stderr, "tandem loadgen compare: %s\n", done.error().message.c_str());
    exit_code = done ? *done : UsageOr(done.error(), kFailed);
  });
}

}  // namespace tandem::cli
