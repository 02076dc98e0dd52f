#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "bench/training/networks.h"

namespace tandem::bench {

// A network as somebody writes it who knows libtorch.
class TorchNetwork : public torch::nn::Module {
 public:
  virtual torch::Tensor Forward(torch::Tensor x) = 0;
};

[[nodiscard]] std::shared_ptr<TorchNetwork> MakeTorchNetwork(const Network& network);

}  // namespace tandem::bench
