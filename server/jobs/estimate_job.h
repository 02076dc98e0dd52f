#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "api/base/training_memory.h"
#include "server/jobs/job_options.h"

namespace tandem::jobs {

// No estimate takes longer.
inline constexpr std::chrono::seconds kEstimatePatience{60};

// What a job on that model would take of memory. Starts a trainer that does nothing else, bounded in memory by the size
// of the model, and waits for its end, so not for a thread that serves others, and the thread must outlive the call.
// Errors are those that the job would end with; kDeadlineExceeded after kEstimatePatience; kUnavailable when `stop`
// becomes true meanwhile. One at a time for a state folder.
[[nodiscard]] Result<MemoryEstimate> EstimateJob(const TrainingJob& job, const std::filesystem::path& model,
                                                 const JobOptions& options, const Clock& clock,
                                                 const std::atomic<bool>& stop);

}  // namespace tandem::jobs
