#pragma once

#include <string>

namespace tandem::bench {

// The body of a job without end that trains a model, as a server knows it, on random pictures, `batch` a step.
[[nodiscard]] std::string SyntheticJob(const std::string& model, int batch);

}  // namespace tandem::bench
