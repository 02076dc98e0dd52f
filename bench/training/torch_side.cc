#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include "bench/training/network_job.h"
#include "bench/training/sides.h"
#include "bench/training/torch_networks.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::bench {

Status TrainWithTorch(const TrainingSetup& setup, Turns& turns) {
  at::set_num_threads(setup.threads);
  torch::manual_seed(0);
  const auto network = MakeTorchNetwork(setup.network);
  network->train();
  torch::optim::AdamW optimizer(network->parameters(),
                                torch::optim::AdamWOptions(kLearningRate).weight_decay(kWeightDecay));
  std::vector<std::int64_t> shape{kExamples};
  shape.insert(shape.end(), setup.network.example.begin(), setup.network.example.end());
  const torch::Tensor x = setup.network.tokens ? torch::randint(kVocabulary, shape, torch::kLong) : torch::randn(shape);
  const torch::Tensor y = torch::randint(setup.network.classes, {kExamples}, torch::kLong);
  while (true) {
    const torch::Tensor order = torch::randperm(kExamples, torch::kLong);
    for (std::int64_t first = 0; first + setup.batch <= kExamples; first += setup.batch) {
      const torch::Tensor chosen = order.slice(0, first, first + setup.batch);
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(network->Forward(x.index_select(0, chosen)), y.index_select(0, chosen));
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      if (!turns.StepDone()) return {};
    }
  }
}

Status TrainWithTorchAndHeap(const TrainingSetup& setup, Turns& turns) {
  training::KeepFreedMemory();
  return TrainWithTorch(setup, turns);
}

}  // namespace tandem::bench
