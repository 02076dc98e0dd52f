#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "api/base/result.h"
#include "api/base/training_job.h"

namespace tandem::training {

// Tensors by name, as a checkpoint holds them.
using NamedTensors = std::map<std::string, at::Tensor>;

// Changes parameters by their gradients, in place. One kind of update for all of them, by ATen's fused kernels. Used by
// the training thread.
class Optimizer {
 public:
  // `parameters` are leaves that require gradients, by name.
  Optimizer(const OptimizerSpec& spec, const NamedTensors& parameters);

  // Parameters without a gradient stay as they are; `before_each` is called before each of the others.
  void Step(double learning_rate, const std::function<void()>& before_each);
  void ClearGradients();
  // Scales the gradients so that their joint norm is at most `most`; returns the norm before.
  double ClipGradients(double most);

  // What has to be kept to go on exactly. The tensors are the optimizer's own, not copies.
  [[nodiscard]] NamedTensors State() const;
  // Takes over a state of the same optimizer; kInvalidArgument names what is missing or does not fit.
  [[nodiscard]] Status Restore(const NamedTensors& state);

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter;
    at::Tensor first;   // Momentum, or the mean of gradients; undefined when there is none.
    at::Tensor second;  // The mean of their squares; undefined for SGD.
    at::Tensor steps;   // How many updates it has had.
  };

  void StepSgd(Slot& slot, double learning_rate) const;
  void StepAdam(Slot& slot, double learning_rate) const;
  // Makes the tensors of a slot when its first gradient comes, or when a state is restored.
  void Fill(Slot& slot) const;

  const OptimizerSpec spec_;
  std::vector<Slot> slots_;
};

}  // namespace tandem::training
