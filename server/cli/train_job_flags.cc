#include "server/cli/train_job_flags.h"

#include <utility>

#include <CLI/CLI.hpp>

#include "api/wire/json_document.h"

namespace tandem::cli {
namespace {

// In place of a bound.
constexpr const char* kWhatIsFree = "fit";

// Turns a member that may be a text into the object that the text is short for: "sgd" → {"kind": "sgd"}.
Result<Json::Value*> Section(Json::Value& job, const char* name, const char* short_for, const char* flag) {
  Json::Value& section = job[name];
  if (section.isNull()) section = Json::Value(Json::objectValue);
  if (section.isString()) {
    Json::Value object(Json::objectValue);
    object[short_for] = section;
    section = std::move(object);
  }
  if (section.isObject()) return &section;
  return Invalid("{} cannot change the job's \"{}\", which is {}", flag, name, JsonExcerpt(section));
}

Status LayOverModel(Json::Value& job, const JobFlags& flags) {
  // Another model has other versions.
  if (flags.model) job["model"] = *flags.model;
  if (!flags.model_version) return {};
  TANDEM_ASSIGN(Json::Value* const model, Section(job, "model", "name", "--model-version"));
  if (!model->isMember("name")) return Invalid("--model-version needs --model, or a job with a model");
  (*model)["version"] = *flags.model_version;
  return {};
}

Status LayOverData(Json::Value& job, const JobFlags& flags) {
  if (flags.data) {
    if (job["data"].isObject()) {
      job["data"]["path"] = *flags.data;
    } else {
      job["data"] = *flags.data;
    }
  }
  if (!flags.target) return {};
  TANDEM_ASSIGN(Json::Value* const data, Section(job, "data", "path", "--target"));
  (*data)["target"] = *flags.target;
  return {};
}

Status LayOverKind(Json::Value& job, const char* name, const std::optional<std::string>& kind, const char* flag) {
  if (!kind) return {};
  TANDEM_ASSIGN(Json::Value* const section, Section(job, name, "kind", flag));
  if ((*section)["kind"] != Json::Value(*kind)) *section = Json::Value(Json::objectValue);
  (*section)["kind"] = *kind;
  return {};
}

Status LayOverEvaluation(Json::Value& job, const JobFlags& flags) {
  if (!flags.eval_split) return {};
  TANDEM_ASSIGN(Json::Value* const evaluation, Section(job, "evaluation", "split", "--eval-split"));
  evaluation->removeMember("data");
  (*evaluation)["split"] = *flags.eval_split;
  return {};
}

}  // namespace

void AddJobFlags(CLI::App& command, JobFlags& flags) {
  const auto add = [&command](const char* flag, auto& value, const char* help) {
    return command.add_option(flag, value, help)->group("The job");
  };
  add("--model", flags.model, "The model to train");
  add("--model-version", flags.model_version, "Its version; the one that is served by default");
  add("--data", flags.data, "The examples, below the server's data root: an .npz or .csv file, or a folder");
  add("--target", flags.target, "The array or column that is learnt; y by default");
  add("--loss", flags.loss, "cross_entropy (default), mse, bce, l1 or huber");
  add("--optimizer", flags.optimizer, "adamw (default), adam or sgd");
  add("--lr", flags.lr, "Learning rate; 0.001 by default");
  add("--batch-size", flags.batch_size, "Examples in a batch; 32 by default");
  CLI::Option* epochs = add("--epochs", flags.epochs, "How often all examples are seen");
  add("--steps", flags.steps, "Steps of the optimizer, instead of epochs")->excludes(epochs);
  add("--eval-split", flags.eval_split, "Share of the examples that is held out for evaluation");
  add("--publish", flags.publish, "never (default), on_success or if_better: serve the result as the next version");
  add("--name", flags.name, "Name of the job; the model's by default");
  add("--seed", flags.seed, "Of order, new weights and drop-out");
  command.add_flag("--deterministic", flags.deterministic, "The same bits, however often the job is interrupted")
      ->group("The job");
  add("--fit", flags.fit,
      "Compute a part of each step again to stay within so many bytes (1GiB), or within what is free")
      ->expected(0, 1)
      ->default_str(kWhatIsFree);
  add("--priority", flags.priority, "-1000 to 1000; the larger runs first");
}

Result<Json::Value> LayOverJob(Json::Value job, const JobFlags& flags) {
  if (job.isNull()) job = Json::Value(Json::objectValue);
  if (!job.isObject()) return Invalid("a job is a JSON object, not {}", JsonExcerpt(job));
  TANDEM_TRY(LayOverModel(job, flags));
  TANDEM_TRY(LayOverData(job, flags));
  TANDEM_TRY(LayOverKind(job, "loss", flags.loss, "--loss"));
  TANDEM_TRY(LayOverKind(job, "optimizer", flags.optimizer, "--optimizer"));
  if (flags.lr) {
    TANDEM_ASSIGN(Json::Value* const optimizer, Section(job, "optimizer", "kind", "--lr"));
    (*optimizer)["lr"] = *flags.lr;
  }
  TANDEM_TRY(LayOverEvaluation(job, flags));
  if (flags.batch_size) job["batch_size"] = Json::Int64(*flags.batch_size);
  if (flags.epochs) {
    job.removeMember("steps");
    job["epochs"] = Json::Int64(*flags.epochs);
  }
  if (flags.steps) {
    job.removeMember("epochs");
    job["steps"] = Json::Int64(*flags.steps);
  }
  if (flags.publish) job["publish"] = *flags.publish;
  if (flags.name) job["name"] = *flags.name;
  if (flags.seed) job["seed"] = Json::UInt64(*flags.seed);
  if (flags.priority) job["priority"] = Json::Int64(*flags.priority);
  if (flags.deterministic) job["deterministic"] = true;
  if (flags.fit) {
    job["memory"] = kWhatIsFree;
    if (*flags.fit != kWhatIsFree) {
      job["memory"] = Json::Value(Json::objectValue);
      job["memory"]["fit"] = *flags.fit;
    }
  }
  return job;
}

}  // namespace tandem::cli
