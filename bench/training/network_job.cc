#include "bench/training/network_job.h"

namespace tandem::bench {

TrainingJob NetworkJob(const Network& network, std::int64_t batch) {
  constexpr double kDay = 86'400;
  constexpr std::int64_t kManySteps = 1'000'000'000;
  TrainingJob job;
  job.name = network.name;
  job.model = network.name;
  job.data.path = kDataFile;
  job.optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = kLearningRate, .weight_decay = kWeightDecay};
  job.update_batch_norm = true;
  job.batch_size = batch;
  job.steps = kManySteps;
  job.checkpoint.every_seconds = kDay;
  return job;
}

}  // namespace tandem::bench
