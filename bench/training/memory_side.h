#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "api/base/result.h"
#include "api/base/training_job.h"

namespace tandem::bench {

// One job whose memory is estimated and then measured.
struct MemorySetup {
  std::filesystem::path model;   // An ONNX file.
  std::filesystem::path folder;  // Empty; what a trainer writes goes there.
  std::int64_t classes = 0;
  std::int64_t batch = 1;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  int threads = 1;
};

// Estimates the job, trains two steps of it on random examples, and prints what was told and what was measured, as
// JSON on one line. In a process of its own.
[[nodiscard]] Status CompareMemory(const MemorySetup& setup);

}  // namespace tandem::bench
