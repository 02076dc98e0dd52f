#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/base/byte_text.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/training_data_json.h"
#include "api/wire/training_job_json.h"
#include "api/wire/training_job_names.h"

namespace tandem {
namespace {

using Mistakes = std::vector<JsonMistake>;

constexpr std::size_t kMaxTextBytes = 1 << 20;
constexpr std::size_t kMaxPatterns = 1000;
constexpr std::size_t kVersionDigits = 18;  // Every such number fits 63 bits.
constexpr std::int64_t kMaxBatch = 1 << 20;
constexpr std::int64_t kMaxEpochs = 1'000'000;
constexpr std::int64_t kMaxClasses = 1'000'000;
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxPriority = 1000;
constexpr std::int64_t kMaxKeep = 100;
constexpr double kMaxSeconds = 86'400;
constexpr double kAdamWDecay = 0.01;  // As PyTorch has it.
constexpr std::uint64_t kMinMemory = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 50;
constexpr NumberBounds kBelowOne{.least = 0, .most = 1, .below = true};

// A section that is "KIND" or {"kind": "KIND", …}: as an object. Null where it is neither, which is noted.
template <typename Table>
Json::Value Section(JsonFields& job, const char* name, const Table& table) {
  Json::Value section(Json::objectValue);
  const Json::Value* const value = job.Find(name);
  if (value == nullptr) return section;
  if (value->isObject()) return *value;
  std::vector<std::string_view> words;
  for (const auto& [word, kind] : table) words.push_back(word);
  if (value->isString() && std::ranges::contains(words, value->asString())) {
    section["kind"] = *value;
    return section;
  }
  job.Mistake(job.PointerTo(name), *value, OneOf(words) + ", or an object with such a \"kind\"");
  return {};
}

// Notes a field that says something which its kind has no use for.
template <typename Table, typename Kind>
void OnlyFor(JsonFields& fields, const char* name, bool said, const Table& table, Kind kind, Kind owner) {
  if (said && kind != owner) {
    fields.Contradiction(
        name, Format("it belongs to the kind {}, and this is {}", KindName(table, owner), KindName(table, kind)));
  }
}

void ReadVersion(JsonFields& fields, std::string& target) {
  const Json::Value* const value = fields.Find("version");
  if (value == nullptr) return;
  std::string text;
  if (value->isString()) text = value->asString();
  if (value->isInt64() && value->asInt64() > 0) text = std::to_string(value->asInt64());
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!text.empty() && text.size() <= kVersionDigits && text[0] != '0' && std::ranges::all_of(text, digit)) {
    target = text;
  } else {
    fields.Mistake(fields.PointerTo("version"), *value,
                   Format("a whole number above 0 of at most {} digits", kVersionDigits));
  }
}

// "digits" or {"name": "digits", "version": "1"}.
void ReadModel(JsonFields& fields, TrainingJob& job, Mistakes& mistakes) {
  const Json::Value* const value = fields.Find("model");
  const std::string pointer = fields.PointerTo("model");
  if (value == nullptr) return fields.Missing("model", "the name of the model to train");
  if (!value->isObject()) return ReadJobName(fields, pointer, *value, job.model);
  JsonFields members(*value, pointer, mistakes);
  if (const Json::Value* name = members.Find("name")) {
    ReadJobName(members, members.PointerTo("name"), *name, job.model);
  } else {
    members.Missing("name", "the name of the model to train");
  }
  ReadVersion(members, job.model_version);
  members.Finish();
}

LossSpec ReadLoss(JsonFields& job, Mistakes& mistakes) {
  LossSpec loss;
  const LossSpec plain;
  const Json::Value section = Section(job, "loss", kLossKinds);
  if (!section.isObject()) return loss;
  JsonFields fields(section, job.PointerTo("loss"), mistakes);
  const bool known = fields.Choice("kind", loss.kind, kLossKinds);
  fields.Number("delta", loss.delta, {.least = 0, .most = 1e6, .above = true});
  fields.Number("label_smoothing", loss.label_smoothing, kBelowOne);
  if (known) {
    OnlyFor(fields, "delta", loss.delta != plain.delta, kLossKinds, loss.kind, LossKind::kHuber);
    OnlyFor(fields, "label_smoothing", loss.label_smoothing != plain.label_smoothing, kLossKinds, loss.kind,
            LossKind::kCrossEntropy);
  }
  fields.Finish();
  return loss;
}

void ReadBetas(JsonFields& fields, OptimizerSpec& optimizer) {
  const Json::Value* const value = fields.Find("betas");
  if (value == nullptr) return;
  const auto good = [](const Json::Value& beta) { return beta.isNumeric() && kBelowOne.Hold(beta.asDouble()); };
  if (!value->isArray() || value->size() != 2 || !good((*value)[0]) || !good((*value)[1])) {
    return fields.Mistake(fields.PointerTo("betas"), *value, "a list of two numbers of at least 0 and below 1");
  }
  optimizer.beta1 = (*value)[0].asDouble();
  optimizer.beta2 = (*value)[1].asDouble();
}

OptimizerSpec ReadOptimizer(JsonFields& job, Mistakes& mistakes) {
  OptimizerSpec optimizer;
  const OptimizerSpec plain;
  const Json::Value section = Section(job, "optimizer", kOptimizerKinds);
  if (!section.isObject()) return optimizer;
  JsonFields fields(section, job.PointerTo("optimizer"), mistakes);
  const bool known = fields.Choice("kind", optimizer.kind, kOptimizerKinds);
  if (optimizer.kind == OptimizerKind::kAdamW) optimizer.weight_decay = kAdamWDecay;
  fields.Number("lr", optimizer.learning_rate, {.least = 0, .most = 1000, .above = true});
  fields.Number("weight_decay", optimizer.weight_decay, 0, 100);
  fields.Number("momentum", optimizer.momentum, kBelowOne);
  fields.Flag("nesterov", optimizer.nesterov);
  ReadBetas(fields, optimizer);
  fields.Number("eps", optimizer.epsilon, {.least = 0, .most = 1, .above = true});
  if (known && optimizer.kind == OptimizerKind::kSgd) {
    if (optimizer.nesterov && optimizer.momentum == 0) fields.Contradiction("nesterov", "there is no momentum");
    const bool betas = optimizer.beta1 != plain.beta1 || optimizer.beta2 != plain.beta2;
    if (betas) fields.Contradiction("betas", "sgd has none");
    if (optimizer.epsilon != plain.epsilon) fields.Contradiction("eps", "sgd has none");
  } else if (known) {
    OnlyFor(fields, "momentum", optimizer.momentum != 0, kOptimizerKinds, optimizer.kind, OptimizerKind::kSgd);
    OnlyFor(fields, "nesterov", optimizer.nesterov, kOptimizerKinds, optimizer.kind, OptimizerKind::kSgd);
  }
  fields.Finish();
  return optimizer;
}

ScheduleSpec ReadSchedule(JsonFields& job, Mistakes& mistakes) {
  ScheduleSpec schedule;
  const ScheduleSpec plain;
  const Json::Value section = Section(job, "schedule", kScheduleKinds);
  if (!section.isObject()) return schedule;
  JsonFields fields(section, job.PointerTo("schedule"), mistakes);
  const bool known = fields.Choice("kind", schedule.kind, kScheduleKinds);
  fields.Whole("warmup_steps", schedule.warmup_steps, 0, kMaxJobCount);
  fields.Number("floor", schedule.floor, 0, 1);
  fields.Whole("step_size", schedule.every_steps, 1, kMaxJobCount);
  fields.Number("gamma", schedule.factor, {.least = 0, .most = 1, .above = true});
  if (known) {
    OnlyFor(fields, "floor", schedule.floor != plain.floor, kScheduleKinds, schedule.kind, ScheduleKind::kCosine);
    OnlyFor(fields, "step_size", schedule.every_steps != plain.every_steps, kScheduleKinds, schedule.kind,
            ScheduleKind::kStep);
    OnlyFor(fields, "gamma", schedule.factor != plain.factor, kScheduleKinds, schedule.kind, ScheduleKind::kStep);
    if (schedule.kind == ScheduleKind::kStep && !section.isMember("step_size")) {
      fields.Missing("step_size", "the kind step needs the steps between two falls");
    }
  }
  fields.Finish();
  return schedule;
}

std::optional<HeadSpec> ReadHead(JsonFields& job, Mistakes& mistakes) {
  const Json::Value* const value = job.Object("replace_head");
  if (value == nullptr) return std::nullopt;
  HeadSpec head;
  JsonFields fields(*value, job.PointerTo("replace_head"), mistakes);
  ReadJobText(fields, "output", head.output);
  fields.Whole("classes", head.classes, 1, kMaxClasses);
  if (!value->isMember("classes")) fields.Missing("classes", "how many outputs the new last layer has");
  fields.Finish();
  return head;
}

EvaluationSpec ReadEvaluation(JsonFields& job, Mistakes& mistakes) {
  EvaluationSpec evaluation;
  const Json::Value* const value = job.Object("evaluation");
  if (value == nullptr) return evaluation;
  JsonFields fields(*value, job.PointerTo("evaluation"), mistakes);
  fields.Number("split", evaluation.split, {.least = 0, .most = 1, .above = true, .below = true});
  if (const Json::Value* data = fields.Find("data")) {
    evaluation.data = ReadDataSpec(*data, fields.PointerTo("data"), mistakes);
    if (value->isMember("split")) fields.Contradiction("split", "there is data for evaluation: give one of them");
  } else if (!value->isMember("split")) {
    fields.Missing("split", "evaluation needs a split of the training data, or data of its own");
  }
  fields.Whole("every_steps", evaluation.every_steps, 0, kMaxJobCount);
  fields.Whole("patience", evaluation.patience, 0, kMaxJobCount);
  fields.Finish();
  return evaluation;
}

CheckpointSpec ReadCheckpoint(JsonFields& job, Mistakes& mistakes) {
  CheckpointSpec checkpoint;
  const Json::Value* const value = job.Object("checkpoint");
  if (value == nullptr) return checkpoint;
  JsonFields fields(*value, job.PointerTo("checkpoint"), mistakes);
  fields.Whole("every_steps", checkpoint.every_steps, 0, kMaxJobCount);
  fields.Number("every_seconds", checkpoint.every_seconds, 0, kMaxSeconds);
  fields.Whole("keep", checkpoint.keep, 1, kMaxKeep);
  if (checkpoint.every_steps == 0 && checkpoint.every_seconds == 0) {
    fields.Contradiction("every_seconds", "every_steps is 0, too: there would be no checkpoint");
  }
  fields.Finish();
  return checkpoint;
}

// A number or a text.
void ReadBytes(JsonFields& fields, const char* name, std::string_view or_else, std::optional<std::uint64_t>& target) {
  const Json::Value* const value = fields.Find(name);
  if (value == nullptr) return;
  std::optional<double> bytes;
  if (value->isUInt64()) bytes = static_cast<double>(value->asUInt64());
  if (value->isString()) bytes = ParseByteText(value->asString());
  if (bytes && *bytes >= static_cast<double>(kMinMemory) && *bytes <= static_cast<double>(kMaxMemory)) {
    target = static_cast<std::uint64_t>(*bytes);
  } else {
    fields.Mistake(
        fields.PointerTo(name), *value,
        Format("bytes from {} to {}, or a text like \"2GB\" or \"1.5GiB\"{}", kMinMemory, kMaxMemory, or_else));
  }
}

void ReadMemory(JsonFields& fields, TrainingJob& job, Mistakes& mistakes) {
  const Json::Value* const value = fields.Find("memory");
  if (value != nullptr && *value == Json::Value("fit")) {
    job.fit = true;
    return;
  }
  if (value == nullptr || !value->isObject()) {
    return ReadBytes(fields, "memory", ", or \"fit\", or {\"fit\": one of these}", job.memory);
  }
  JsonFields bound(*value, fields.PointerTo("memory"), mistakes);
  job.fit = true;
  ReadBytes(bound, "fit", "", job.memory);
  if (!value->isMember("fit")) bound.Missing("fit", "it is the bound that a step is to stay within");
  bound.Finish();
}

void ReadSeed(JsonFields& fields, std::uint64_t& target) {
  const Json::Value* const value = fields.Find("seed");
  if (value == nullptr) return;
  if (value->isUInt64()) {
    target = value->asUInt64();
  } else {
    fields.Mistake(fields.PointerTo("seed"), *value, "a whole number from 0 to 18446744073709551615");
  }
}

void ReadLength(JsonFields& fields, TrainingJob& job) {
  fields.Whole("batch_size", job.batch_size, 1, kMaxBatch);
  fields.Whole("epochs", job.epochs, 1, kMaxEpochs);
  fields.Whole("steps", job.steps, 1, kMaxJobCount);
  fields.Whole("accumulate", job.accumulate, 1, kMaxBatch);
  const Json::Value* const epochs = fields.Find("epochs");
  const Json::Value* const steps = fields.Find("steps");
  if (epochs != nullptr && steps != nullptr) {
    fields.Contradiction("steps", Format("/epochs is {}: give one of them", JsonExcerpt(*epochs)));
  }
  if (epochs == nullptr && steps == nullptr) fields.Missing("epochs", "a job needs epochs or steps");
}

void ReadRunning(JsonFields& fields, TrainingJob& job, Mistakes& mistakes) {
  fields.Number("clip_norm", job.clip_norm, 0, 1e9);
  fields.Flag("update_batch_norm", job.update_batch_norm);
  fields.Whole("priority", job.priority, -kMaxPriority, kMaxPriority);
  ReadSeed(fields, job.seed);
  fields.Flag("deterministic", job.deterministic);
  fields.Whole("threads", job.threads, 0, kMaxThreads);
  ReadMemory(fields, job, mistakes);
}

// What only several sections together tell.
void CheckTogether(JsonFields& fields, const Json::Value& json, const TrainingJob& job, Mistakes& mistakes) {
  if (job.publish == PublishRule::kIfBetter && !json.isMember("evaluation")) {
    fields.Contradiction("publish", "there is no evaluation that could tell what is better");
  }
  if (job.steps > 0 && job.schedule.warmup_steps >= job.steps) {
    JsonFields(json["schedule"], fields.PointerTo("schedule"), mistakes)
        .Contradiction("warmup_steps", Format("/steps is {}: the job would end before", job.steps));
  }
}

enum class JobKind { kFinetune };
constexpr std::array<std::pair<std::string_view, JobKind>, 1> kJobKinds = {{{"finetune", JobKind::kFinetune}}};

TrainingJob ReadJob(const Json::Value& json, Mistakes& mistakes) {
  TrainingJob job;
  JsonFields fields(json, "", mistakes);
  JobKind kind = JobKind::kFinetune;
  fields.Choice("kind", kind, kJobKinds);
  ReadModel(fields, job, mistakes);
  job.name = job.model;
  if (const Json::Value* name = fields.Find("name")) ReadJobName(fields, "/name", *name, job.name);
  ReadJobText(fields, "output", job.output);
  if (const Json::Value* data = fields.Find("data")) {
    job.data = ReadDataSpec(*data, "/data", mistakes);
  } else {
    fields.Missing("data", "where the examples come from");
  }
  job.loss = ReadLoss(fields, mistakes);
  job.optimizer = ReadOptimizer(fields, mistakes);
  job.schedule = ReadSchedule(fields, mistakes);
  ReadJobTexts(fields, "trainable", kMaxPatterns, job.trainable);
  job.replace_head = ReadHead(fields, mistakes);
  ReadLength(fields, job);
  ReadRunning(fields, job, mistakes);
  job.evaluation = ReadEvaluation(fields, mistakes);
  job.checkpoint = ReadCheckpoint(fields, mistakes);
  fields.Choice("publish", job.publish, kPublishRules);
  CheckTogether(fields, json, job, mistakes);
  fields.Finish();
  return job;
}

}  // namespace

Error JobMistakes::ToError() const {
  std::string text;
  for (const JsonMistake& mistake : list) text += (text.empty() ? "" : "; ") + mistake.message;
  return {ErrorCode::kInvalidArgument, std::move(text)};
}

Json::Value JobMistakes::ToJson() const {
  Json::Value json(Json::arrayValue);
  for (const JsonMistake& mistake : list) {
    Json::Value& item = json.append(Json::Value(Json::objectValue));
    item["pointer"] = mistake.pointer;
    item["message"] = mistake.message;
  }
  return json;
}

std::expected<TrainingJob, JobMistakes> ReadTrainingJob(const Json::Value& json) {
  JobMistakes mistakes;
  if (!json.isObject()) {
    mistakes.list.push_back({"", Format("the job is {}; it must be an object", JsonExcerpt(json))});
    return std::unexpected(std::move(mistakes));
  }
  TrainingJob job = ReadJob(json, mistakes.list);
  if (mistakes.list.empty()) return job;
  if (const std::size_t all = mistakes.list.size(); all > JobMistakes::kMost) {
    mistakes.list.resize(JobMistakes::kMost);
    mistakes.list.back() = {"", Format("and {} more", all - JobMistakes::kMost + 1)};
  }
  return std::unexpected(std::move(mistakes));
}

std::expected<TrainingJob, JobMistakes> ParseTrainingJob(std::string_view text) {
  const auto refuse = [](std::string why) {
    return std::unexpected(JobMistakes{{{"", Format("the job is {}", why)}}});
  };
  if (text.size() > kMaxTextBytes) return refuse(Format("longer than {} bytes", kMaxTextBytes));
  const Result<Json::Value> json = ParseStrictJson(text);
  if (!json) return refuse(json.error().message);
  return ReadTrainingJob(*json);
}

}  // namespace tandem
