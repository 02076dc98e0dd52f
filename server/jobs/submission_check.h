#pragma once

#include <filesystem>
#include <string>

#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/jobs/job_options.h"
#include "server/repository/model_repository.h"

namespace tandem::jobs {

// What a job will be trained from.
struct TrainingSource {
  std::filesystem::path model;
  std::string version;
};

// Finds the model of a job and checks that it can be trained: it is there, it is ONNX, and training knows its operators
// (kUnsupported names those that it does not, with their nodes). The data must lie under the data root.
[[nodiscard]] Result<TrainingSource> CheckSubmission(const TrainingJob& job, const JobOptions& options,
                                                     const repository::ModelRepository& repository);

}  // namespace tandem::jobs
