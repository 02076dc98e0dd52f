#pragma once

#include <atomic>
#include <filesystem>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/job_options.h"

namespace tandem::jobs {

// What another model than the job's own comes to in the job's evaluation: accuracy, else the loss. Starts a trainer for
// it, within the bounds of the job's own, and waits for its end, so not for a thread that serves others, and the thread
// must outlive the call. kUnavailable when `stop` becomes true meanwhile.
[[nodiscard]] Result<double> MeasureModel(const TrainingJob& job, const std::filesystem::path& model,
                                          const JobFolder& folder, const JobOptions& options, const Clock& clock,
                                          const std::atomic<bool>& stop);

}  // namespace tandem::jobs
