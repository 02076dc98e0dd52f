#pragma once

#include "api/base/data_type.h"
#include "api/base/result.h"
#include "runtimes/training/data/example_source.h"
#include "runtimes/training/trainer/learner.h"

namespace tandem::training {

// The batch in ATen's form; the bytes are shared, not copied.
[[nodiscard]] Result<Examples> ToExamples(const Batch& batch);

// What the model of a job needs of its data.
[[nodiscard]] Result<DataNeeds> NeedsOf(const Learner& learner, const TrainingJob& job);

}  // namespace tandem::training
