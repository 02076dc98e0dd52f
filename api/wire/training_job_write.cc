#include "api/wire/training_data_json.h"
#include "api/wire/training_job_json.h"
#include "api/wire/training_job_names.h"

namespace tandem {
namespace {

template <typename Table, typename Kind>
std::string Name(const Table& table, Kind kind) {
  return std::string(KindName(table, kind));
}

Json::Value LossToJson(const LossSpec& loss) {
  Json::Value json(Json::objectValue);
  json["kind"] = Name(kLossKinds, loss.kind);
  if (loss.kind == LossKind::kHuber) json["delta"] = loss.delta;
  if (loss.kind == LossKind::kCrossEntropy) json["label_smoothing"] = loss.label_smoothing;
  return json;
}

Json::Value OptimizerToJson(const OptimizerSpec& optimizer) {
  Json::Value json(Json::objectValue);
  json["kind"] = Name(kOptimizerKinds, optimizer.kind);
  json["lr"] = optimizer.learning_rate;
  json["weight_decay"] = optimizer.weight_decay;
  if (optimizer.kind == OptimizerKind::kSgd) {
    json["momentum"] = optimizer.momentum;
    json["nesterov"] = optimizer.nesterov;
  } else {
    json["betas"].append(optimizer.beta1);
    json["betas"].append(optimizer.beta2);
    json["eps"] = optimizer.epsilon;
  }
  return json;
}

Json::Value ScheduleToJson(const ScheduleSpec& schedule) {
  Json::Value json(Json::objectValue);
  json["kind"] = Name(kScheduleKinds, schedule.kind);
  json["warmup_steps"] = Json::Int64{schedule.warmup_steps};
  if (schedule.kind == ScheduleKind::kCosine) json["floor"] = schedule.floor;
  if (schedule.kind == ScheduleKind::kStep) {
    json["step_size"] = Json::Int64{schedule.every_steps};
    json["gamma"] = schedule.factor;
  }
  return json;
}

Json::Value EvaluationToJson(const EvaluationSpec& evaluation) {
  Json::Value json(Json::objectValue);
  if (evaluation.data) {
    json["data"] = DataSpecToJson(*evaluation.data);
  } else {
    json["split"] = evaluation.split;
  }
  json["every_steps"] = Json::Int64{evaluation.every_steps};
  json["patience"] = Json::Int64{evaluation.patience};
  return json;
}

Json::Value CheckpointToJson(const CheckpointSpec& checkpoint) {
  Json::Value json(Json::objectValue);
  json["every_steps"] = Json::Int64{checkpoint.every_steps};
  json["every_seconds"] = checkpoint.every_seconds;
  json["keep"] = checkpoint.keep;
  return json;
}

}  // namespace

Json::Value TrainingJobToJson(const TrainingJob& job) {
  Json::Value json(Json::objectValue);
  json["name"] = job.name;
  json["kind"] = "finetune";
  json["model"]["name"] = job.model;
  if (!job.model_version.empty()) json["model"]["version"] = job.model_version;
  if (!job.output.empty()) json["output"] = job.output;
  json["data"] = DataSpecToJson(job.data);
  json["loss"] = LossToJson(job.loss);
  json["optimizer"] = OptimizerToJson(job.optimizer);
  json["schedule"] = ScheduleToJson(job.schedule);
  for (const std::string& pattern : job.trainable) json["trainable"].append(pattern);
  if (job.replace_head) {
    if (!job.replace_head->output.empty()) json["replace_head"]["output"] = job.replace_head->output;
    json["replace_head"]["classes"] = Json::Int64{job.replace_head->classes};
  }
  json["update_batch_norm"] = job.update_batch_norm;
  json["batch_size"] = Json::Int64{job.batch_size};
  if (job.epochs > 0) json["epochs"] = Json::Int64{job.epochs};
  if (job.steps > 0) json["steps"] = Json::Int64{job.steps};
  json["accumulate"] = Json::Int64{job.accumulate};
  json["clip_norm"] = job.clip_norm;
  if (job.evaluation.data || job.evaluation.split > 0) json["evaluation"] = EvaluationToJson(job.evaluation);
  json["checkpoint"] = CheckpointToJson(job.checkpoint);
  json["publish"] = Name(kPublishRules, job.publish);
  json["priority"] = job.priority;
  json["seed"] = Json::UInt64{job.seed};
  json["deterministic"] = job.deterministic;
  json["threads"] = job.threads;
  if (job.fit) json["memory"] = "fit";
  if (job.memory) {
    if (job.fit) json["memory"] = Json::Value(Json::objectValue);
    Json::Value& memory = job.fit ? json["memory"]["fit"] : json["memory"];
    memory = Json::UInt64{*job.memory};
  }
  return json;
}

}  // namespace tandem
