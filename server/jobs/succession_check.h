#pragma once

#include <optional>
#include <string>

#include "api/base/result.h"
#include "api/base/training_job.h"
#include "server/repository/model_repository.h"

namespace tandem::jobs {

// Whether a trained model can take the place of the one that is served: the same inputs and outputs by name, type, rank
// and every fixed dimension; the names of free dimensions do not matter. With a new head the number of classes of its
// output may differ; the answer says so in words, and is empty otherwise. kConflict names the tensor and both sides.
// Pure.
[[nodiscard]] Result<std::string> CheckSuccession(const repository::Succession& succession,
                                                  const std::optional<HeadSpec>& head);

}  // namespace tandem::jobs
