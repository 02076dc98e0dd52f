#pragma once

#include <cstdint>

#include "api/base/training_job.h"
#include "bench/training/networks.h"

namespace tandem::bench {

// What a folder holds that WriteSetup() (sides.h) has filled.
inline constexpr const char* kModelFile = "model.onnx";
inline constexpr const char* kDataFile = "data.npz";
inline constexpr std::int64_t kExamples = 64;

// How a network is trained, whoever does it: AdamW on cross-entropy, with the statistics of the batches, for ever and
// without checkpoints.
inline constexpr double kLearningRate = 1e-4;
inline constexpr double kWeightDecay = 0.01;
[[nodiscard]] TrainingJob NetworkJob(const Network& network, std::int64_t batch);

}  // namespace tandem::bench
