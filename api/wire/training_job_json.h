#pragma once

#include <cstddef>
#include <expected>
#include <string_view>
#include <vector>

#include <json/value.h>

#include "api/base/error.h"
#include "api/base/training_job.h"
#include "api/wire/json_fields.h"

// Training jobs as JSON; docs/training-jobs.md describes every field.

namespace tandem {

// All that is wrong with a job, in the order in which it was found; never empty. What stands beyond kMost is counted in
// the last entry.
struct JobMistakes {
  static constexpr std::size_t kMost = 50;

  std::vector<JsonMistake> list;

  // kInvalidArgument; the messages, joined by "; ".
  [[nodiscard]] Error ToError() const;
  // [{"pointer": …, "message": …}, …]
  [[nodiscard]] Json::Value ToJson() const;
};

// A job that can be run as far as the text alone tells: every field known, of the right type and within its bounds, and
// none contradicting another. What the model and the data say about it is checked where they are read.
[[nodiscard]] std::expected<TrainingJob, JobMistakes> ReadTrainingJob(const Json::Value& json);
// Text of at most 1 MB.
[[nodiscard]] std::expected<TrainingJob, JobMistakes> ParseTrainingJob(std::string_view text);

// The full form, with every field that the job's kinds have: jobs that were spelled differently but mean the same are
// equal in it, and JsonLine() of it is their canonical text. Reading it gives the same job, for every job that
// ReadTrainingJob gave.
[[nodiscard]] Json::Value TrainingJobToJson(const TrainingJob& job);

}  // namespace tandem
