#include "server/cli/loadgen_spec.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_fields.h"
#include "api/wire/json_text.h"
#include "loadgen/arrival_text.h"

namespace tandem::cli {
namespace {

using Limits = LoadLimits;
using Mistakes = std::vector<JsonMistake>;

constexpr std::size_t kMostMistakes = 20;  // That are told.
constexpr std::size_t kMaxInputs = 1024;

// "x": "@file.npy", {"random": 7}, or a value.
InputChoice ReadInput(const std::string& name, const Json::Value& value, const std::string& pointer,
                      Mistakes& mistakes) {
  InputChoice choice;
  choice.name = name;
  choice.where = pointer;
  if (value.isString() && value.asString().starts_with('@')) {
    choice.file = value.asString().substr(1);
    if (choice.file.empty()) mistakes.push_back({pointer, Format("{} is \"@\"; a file must follow", pointer)});
  } else if (value.isObject()) {
    std::uint64_t seed = 1;
    JsonFields fields(value, pointer, mistakes);
    fields.Whole("random", seed, 0, std::numeric_limits<std::int64_t>::max());
    fields.Finish();
    choice.seed = seed;
  } else if (value.isNull()) {
    mistakes.push_back(
        {pointer, Format("{} is null; it must be a value, \"@FILE.npy\" or {{\"random\": SEED}}", pointer)});
  } else {
    choice.json = value;
  }
  return choice;
}

ShapeChoice ReadShape(const std::string& name, const Json::Value& value, const std::string& pointer,
                      JsonFields& fields) {
  ShapeChoice choice{.name = name, .shape = {}, .where = pointer};
  bool good = value.isArray() && value.size() <= kMaxRank;
  for (Json::ArrayIndex i = 0; good && i < value.size(); ++i) {
    good = value[i].isInt64() && value[i].asInt64() >= 0;
    if (good) choice.shape.push_back(value[i].asInt64());
  }
  if (!good) fields.Mistake(pointer, value, Format("a list of at most {} dimensions", kMaxRank));
  return choice;
}

// The object of that name whose members are named by the model; null when it is absent or wrong.
const Json::Value* NamedMembers(JsonFields& fields, const char* name) {
  const Json::Value* const value = fields.Find(name);
  if (value == nullptr || (value->isObject() && value->size() <= kMaxInputs)) return value;
  fields.Mistake(fields.PointerTo(name), *value, Format("an object of at most {} names", kMaxInputs));
  return nullptr;
}

void ReadChoices(JsonFields& fields, InferChoices& choices, Mistakes& mistakes) {
  choices.inputs_where = fields.PointerTo("inputs");
  choices.shapes_where = fields.PointerTo("shapes");
  if (const Json::Value* inputs = NamedMembers(fields, "inputs")) {
    for (const std::string& name : inputs->getMemberNames()) {
      const std::string pointer = JsonPointer(choices.inputs_where, name);
      choices.inputs.push_back(ReadInput(name, (*inputs)[name], pointer, mistakes));
    }
  }
  if (const Json::Value* shapes = NamedMembers(fields, "shapes")) {
    for (const std::string& name : shapes->getMemberNames()) {
      const std::string pointer = JsonPointer(choices.shapes_where, name);
      choices.shapes.push_back(ReadShape(name, (*shapes)[name], pointer, fields));
      const auto input = std::ranges::find(choices.inputs, name, &InputChoice::name);
      if (input != choices.inputs.end() && !input->file.empty()) {
        mistakes.push_back(
            {pointer, Format("{} is given, but the file '{}' has a shape of its own", pointer, input->file)});
      }
    }
  }
}

// "first", "FILE.npz", or {"output": "FILE.npy"}.
void ReadExpect(JsonFields& fields, ExpectOptions& expect, Mistakes& mistakes) {
  fields.Number("tolerance", expect.tolerance, 0, Limits::kMaxTolerance);
  fields.Whole("check_every", expect.every, 1, Limits::kMaxCheckEvery);
  const Json::Value* const value = fields.Find("expect");
  if (value == nullptr) return;
  expect.where = fields.PointerTo("expect");
  std::vector<std::string> texts;
  bool good = value->isString() || (value->isObject() && value->size() > 0);
  if (value->isString()) texts.push_back(value->asString());
  if (value->isObject()) {
    for (const std::string& output : value->getMemberNames()) {
      good = good && (*value)[output].isString();
      if (good) texts.push_back(output + "=" + (*value)[output].asString());
    }
  }
  if (!good) return fields.Mistake(expect.where, *value, R"("first", "FILE.npz" or {"OUTPUT": "FILE.npy"})");
  if (const Status parsed = ParseExpect(texts, expect); !parsed) {
    mistakes.push_back({expect.where, parsed.error().message});
  }
}

// A mistake in how much load there is, before any of it is offered.
void CheckArrivalText(const ModelOptions& model, const std::string& pointer, Mistakes& mistakes) {
  if (model.users && model.rate) {
    mistakes.push_back({pointer, Format("{}/users is {} and {}/rate is {}: a closed loop has no rate", pointer,
                                        *model.users, pointer, *model.rate)});
    return;
  }
  const std::string kind = model.arrivals.empty() ? (model.users ? "closed" : "poisson") : model.arrivals;
  if (const auto arrivals = loadgen::ParseArrivals(kind, {.rate = model.rate, .users = model.users}); !arrivals) {
    mistakes.push_back(
        {pointer + "/arrivals", Format("{}/arrivals is \"{}\": {}", pointer, Excerpt(kind), arrivals.error().message)});
  }
}

ModelOptions ReadModel(const Json::Value& json, const std::string& pointer, Mistakes& mistakes) {
  ModelOptions model;
  model.where = pointer + ": ";
  const std::size_t before = mistakes.size();
  JsonFields fields(json, pointer, mistakes);
  fields.Text("model", model.model);
  fields.Text("name", model.name);
  fields.Text("version", model.version);
  fields.Text("arrivals", model.arrivals);
  fields.Number("rate", model.rate, 0, 1e300);  // Their own rules follow.
  fields.Whole("users", model.users, 0, std::numeric_limits<int>::max());
  fields.Number("slo_ms", model.slo_ms, Limits::kMinSloMs, Limits::kMaxSloMs);
  fields.Flag("send_slo", model.send_slo);
  fields.Whole("batch", model.batch.size, 1, Limits::kMaxBatch);
  model.batch.where = fields.PointerTo("batch");
  fields.Whole("priority", model.priority, 0, Limits::kMaxPriority);
  fields.Text("format", model.format);
  if (model.format != "binary" && model.format != "json") {
    fields.Mistake(fields.PointerTo("format"), model.format, R"("binary" or "json")");
  }
  ReadChoices(fields, model.choices, mistakes);
  ReadExpect(fields, model.expect, mistakes);
  if (!json.isMember("model")) fields.Missing("model", "every load names the model that it asks");
  fields.Finish();
  if (mistakes.size() == before) CheckArrivalText(model, pointer, mistakes);
  return model;
}

void ReadModels(JsonFields& fields, RunOptions& run, Mistakes& mistakes) {
  const Json::Value* const models = fields.Find("models");
  if (models == nullptr) return fields.Missing("models", "a list of the loads, one for each model");
  if (!models->isArray() || models->empty() || models->size() > kMaxMixModels) {
    return fields.Mistake("/models", *models, Format("a list of 1 to {} loads", kMaxMixModels));
  }
  for (Json::ArrayIndex i = 0; i < models->size(); ++i) {
    const std::string pointer = Format("/models/{}", i);
    if ((*models)[i].isObject()) {
      run.models.push_back(ReadModel((*models)[i], pointer, mistakes));
    } else {
      fields.Mistake(pointer, (*models)[i], "an object");
    }
  }
  std::set<std::string> names;
  for (const ModelOptions& model : run.models) {
    const std::string& name = model.name.empty() ? model.model : model.name;
    if (!name.empty() && !names.insert(name).second) {
      mistakes.push_back({"/models", Format("{}'{}' is there already: a \"name\" of its own tells it apart",
                                            model.where, Excerpt(name))});
    }
  }
}

}  // namespace

Status ReadLoadSpec(const std::string& file, RunOptions& run) {
  auto json = ReadJsonFile(file);
  if (!json) return Invalid("--spec {}", json.error().message);
  Mistakes mistakes;
  JsonFields fields(*json, "", mistakes);
  fields.Text("url", run.client.url);
  fields.Text("metrics_url", run.metrics_url);
  fields.Number("duration", run.duration, Limits::kMinDuration, Limits::kMaxDuration);
  fields.Number("warmup", run.warmup, 0, Limits::kMaxWarmup);
  fields.Number("percentile", run.percentile, Limits::kMinPercentile, Limits::kMaxPercentile);
  fields.Number("confidence", run.confidence, Limits::kMinConfidence, Limits::kMaxConfidence);
  fields.Whole("seed", run.seed, 0, std::numeric_limits<std::uint32_t>::max());
  fields.Whole("connections", run.connections, 1, Limits::kMaxConnections);
  fields.Whole("channels", run.channels, 1, Limits::kMaxChannels);
  fields.Number("request_timeout", run.request_timeout, Limits::kMinTimeout, Limits::kMaxTimeout);
  ReadModels(fields, run, mistakes);
  fields.Finish();
  if (mistakes.empty()) return {};
  std::string text = Format("--spec '{}' has {}:", file, mistakes.size() == 1 ? "a mistake" : "mistakes");
  for (std::size_t i = 0; i < std::min(mistakes.size(), kMostMistakes); ++i) text += "\n  " + mistakes[i].message;
  if (mistakes.size() > kMostMistakes) text += Format("\n  and {} more", mistakes.size() - kMostMistakes);
  return Fail(ErrorCode::kInvalidArgument, "{}", text);
}

}  // namespace tandem::cli
