#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <json/value.h>

#include "api/base/result.h"

namespace CLI {
class App;
}

namespace tandem::cli {

// The fields of a training job that have a flag; what was not given leaves the job as it is.
struct JobFlags {
  std::optional<std::string> model;
  std::optional<std::string> model_version;
  std::optional<std::string> data;
  std::optional<std::string> target;
  std::optional<std::string> loss;
  std::optional<std::string> optimizer;
  std::optional<double> lr;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> steps;
  std::optional<double> eval_split;
  std::optional<std::string> publish;
  std::optional<std::string> name;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> fit;  // The bound of its memory.
  std::optional<std::int64_t> priority;
  bool deterministic = false;
};

void AddJobFlags(CLI::App& command, JobFlags& flags);

// The job as the server is sent it: `job`, an object in the form of docs/training-jobs.md or an empty one, with the
// flags laid over it. A flag that names another kind of loss or optimizer than the job has begins that section anew;
// --epochs and --steps replace each other. Values are the server's to judge. kInvalidArgument: the flags cannot be
// laid over this job. Pure.
[[nodiscard]] Result<Json::Value> LayOverJob(Json::Value job, const JobFlags& flags);

}  // namespace tandem::cli
