#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "api/base/result.h"
#include "runtimes/training/ops/node_view.h"

namespace tandem::training {

using Activation = std::function<at::Tensor(const at::Tensor&)>;

// What the attributes of an RNN, a GRU or an LSTM say. Immutable once read.
struct RecurrentForm {
  enum class Kind { kRnn, kGru, kLstm };

  Kind kind = Kind::kRnn;
  std::int64_t gates = 1;
  std::int64_t hidden = 0;
  std::size_t directions = 1;
  bool backwards = false;  // The one direction is against time.
  bool batch_first = false;
  bool linear_before_reset = false;
  bool input_forget = false;
  std::optional<double> clip;
  std::vector<std::string> names;       // Of the activations, those of each direction after the other.
  std::vector<Activation> activations;  // The same.

  // Number `index` of a direction.
  [[nodiscard]] const Activation& At(std::size_t direction, std::size_t index) const {
    return activations[direction * activations.size() / directions + index];
  }
  [[nodiscard]] at::Tensor Clipped(const at::Tensor& x) const;

  [[nodiscard]] static Result<RecurrentForm> Read(NodeView& node, Kind kind);
};

}  // namespace tandem::training
