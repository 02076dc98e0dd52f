#include "runtimes/training/learning/optimizer.h"

#include <array>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace tandem::training {

Optimizer::Optimizer(const OptimizerSpec& spec, const NamedTensors& parameters) : spec_(spec) {
  for (const auto& [name, parameter] : parameters) slots_.push_back({.name = name, .parameter = parameter});
}

void Optimizer::Fill(Slot& slot) const {
  if (slot.steps.defined()) return;
  slot.steps = at::zeros({}, at::kFloat);
  const bool adam = spec_.kind != OptimizerKind::kSgd;
  if (adam || spec_.momentum != 0) slot.first = at::zeros_like(slot.parameter);
  if (adam) slot.second = at::zeros_like(slot.parameter);
}

void Optimizer::Step(double learning_rate, const std::function<void()>& before_each) {
  const at::NoGradGuard no_gradients;
  for (Slot& slot : slots_) {
    if (!slot.parameter.grad().defined()) continue;
    before_each();
    Fill(slot);
    slot.steps.add_(1);
    if (spec_.kind == OptimizerKind::kSgd) {
      StepSgd(slot, learning_rate);
    } else {
      StepAdam(slot, learning_rate);
    }
  }
}

void Optimizer::StepSgd(Slot& slot, double learning_rate) const {
  const at::TensorList momentum = spec_.momentum == 0 ? at::TensorList() : at::TensorList(slot.first);
  // A buffer of zeros makes the first step what it would be without one: no damping is used.
  at::_fused_sgd_(slot.parameter, slot.parameter.grad(), momentum, spec_.weight_decay, spec_.momentum, learning_rate,
                  /*dampening=*/0, spec_.nesterov, /*maximize=*/false, /*is_first_step=*/false);
}

void Optimizer::StepAdam(Slot& slot, double learning_rate) const {
  const auto update = [&](auto fused) {
    fused(at::TensorList(slot.parameter), at::TensorList(slot.parameter.grad()), at::TensorList(slot.first),
          at::TensorList(slot.second), at::TensorList(), at::TensorList(slot.steps), learning_rate, spec_.beta1,
          spec_.beta2, spec_.weight_decay, spec_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  };
  if (spec_.kind == OptimizerKind::kAdam) {
    update([](auto&&... arguments) { at::_fused_adam_(arguments...); });
  } else {
    update([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
  }
}

void Optimizer::ClearGradients() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad().reset();
}

double Optimizer::ClipGradients(double most) {
  const at::NoGradGuard no_gradients;
  double squares = 0;
  for (const Slot& slot : slots_) {
    const at::Tensor& gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    const at::Tensor of_one = at::linalg_vector_norm(gradient, 2);
    const double norm = of_one.is_meta() ? 0 : of_one.item<double>();
    squares += norm * norm;
  }
  const double norm = std::sqrt(squares);
  if (norm > most) {
    for (Slot& slot : slots_) {
      if (slot.parameter.grad().defined()) slot.parameter.mutable_grad().mul_(most / norm);
    }
  }
  return norm;
}

NamedTensors Optimizer::State() const {
  NamedTensors state;
  for (const Slot& slot : slots_) {
    if (!slot.steps.defined()) continue;
    state.emplace(slot.name + "/steps", slot.steps);
    if (slot.first.defined()) state.emplace(slot.name + "/first", slot.first);
    if (slot.second.defined()) state.emplace(slot.name + "/second", slot.second);
  }
  return state;
}

Status Optimizer::Restore(const NamedTensors& state) {
  const at::NoGradGuard no_gradients;
  std::size_t used = 0;
  for (Slot& slot : slots_) {
    if (!state.contains(slot.name + "/steps")) continue;  // It had no gradient yet.
    Fill(slot);
    const std::array<std::pair<at::Tensor*, const char*>, 3> parts = {
        {{&slot.steps, "/steps"}, {&slot.first, "/first"}, {&slot.second, "/second"}}};
    for (const auto& [tensor, part] : parts) {
      if (!tensor->defined()) continue;
      const auto found = state.find(slot.name + part);
      if (found == state.end()) return Invalid("the optimizer's state lacks '{}{}'", slot.name, part);
      if (found->second.sizes() != tensor->sizes() || found->second.scalar_type() != tensor->scalar_type()) {
        return Invalid("the optimizer's state '{}{}' does not fit the parameter", slot.name, part);
      }
      tensor->copy_(found->second);
      ++used;
    }
  }
  if (used != state.size()) return Invalid("the optimizer's state has {} tensors too many", state.size() - used);
  return {};
}

}  // namespace tandem::training
