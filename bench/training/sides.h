#pragma once

#include <cstdint>
#include <filesystem>

#include "api/base/result.h"
#include "bench/training/networks.h"
#include "bench/training/turns.h"

namespace tandem::bench {

// One side: trains as network_job.h has it, over random examples, shuffled.
struct TrainingSetup {
  Network network;
  std::filesystem::path folder;  // With what WriteSetup() leaves there.
  std::int64_t batch = 1;
  int threads = 1;
  std::int64_t checkpoint_steps = 0;  // Tandem's side alone; 0: no checkpoints.
};

// The model, and the examples as a file of NumPy.
[[nodiscard]] Status WriteSetup(const Network& network, const std::filesystem::path& folder);

// Each trains until `turns` has enough. In a process of its own: both settle how ATen computes.
[[nodiscard]] Status TrainWithTandem(const TrainingSetup& setup, Turns& turns);
// With the server's gate in every second turn, and with none in the others.
[[nodiscard]] Status TrainWithTandemGated(const TrainingSetup& setup, Turns& turns);
[[nodiscard]] Status TrainWithTorch(const TrainingSetup& setup, Turns& turns);
// The same with tandem's heap (runtimes/training/trainer/training_heap.h).
[[nodiscard]] Status TrainWithTorchAndHeap(const TrainingSetup& setup, Turns& turns);

}  // namespace tandem::bench
