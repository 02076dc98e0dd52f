#pragma once

#include <filesystem>

#include "api/base/result.h"
#include "api/base/training_job.h"
#include "api/base/training_memory.h"
#include "runtimes/training/fit/fit_plan.h"

namespace tandem::training {

// What a job will take of memory, told before its first step: goes through two steps as a trainer would, on tensors
// that have shapes and no memory. Reads the model, opens the data as a trainer does and reads one example. Uses as many
// threads as ATen is set to, which shows in what is needed. Errors are those that the job would meet, and kUnsupported
// naming the operator where a step cannot be gone through without numbers. Changes what ATen does with tensors of the
// device "meta", for good (meta_kernels.h). Training thread only.
[[nodiscard]] Result<MemoryEstimate> EstimateMemory(const TrainingJob& job, const std::filesystem::path& model,
                                                    const std::filesystem::path& data_root);

// The same of a job that is to fit (TrainingJob::fit), and the plan by which it stays within its `memory`. Without
// that all is held. kTooLarge tells the least that it could be brought to. One that is not to fit has an empty plan.
struct FittedJob {
  MemoryEstimate memory;
  FitPlan plan;
};
[[nodiscard]] Result<FittedJob> FitMemory(const TrainingJob& job, const std::filesystem::path& model,
                                          const std::filesystem::path& data_root);

}  // namespace tandem::training
