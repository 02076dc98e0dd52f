#pragma once

#include <cstdint>
#include <filesystem>

#include "api/base/result.h"

namespace tandem::bench {

// A deep network that is trained within so many bytes.
struct DepthSetup {
  std::filesystem::path model;   // An ONNX file, and what it tells apart.
  std::filesystem::path folder;  // Empty; what a trainer writes goes there.
  std::int64_t classes = 0;
  std::int64_t batch = 1;
  int threads = 1;
  std::int64_t steps = 1;   // At least three: the first two are not measured.
  std::uint64_t bound = 0;  // Bytes that a job with `memory: fit` has; 0: a job that holds everything.
};

// Trains it on random examples, and prints as JSON on one line what a step takes of time, and what of memory, and what
// was told of either before. In a process of its own, which whoever starts it holds to a limit.
[[nodiscard]] Status TrainDeep(const DepthSetup& setup);

}  // namespace tandem::bench
