#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/data_type.h"
#include "api/base/shape.h"

namespace tandem {

// One input or output of a model. The shape is the graph's own, batch dimension included; -1 is variable.
struct TensorSpec {
  std::string name;
  DataType type = DataType::kFp32;
  Shape shape;
  bool optional = false;
  bool unranked = false;  // The graph says nothing of its shape, which then is empty; inputs only.

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// What a model takes and gives, in the graph's order.
struct ModelSignature {
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  // The graph says that all of them begin with the same variable dimension, and calls it a batch.
  bool named_batch = false;
  // Dimensions that are not fixed may be 0. Not every kernel bears that.
  bool may_be_empty = false;

  [[nodiscard]] const TensorSpec* FindInput(std::string_view name) const { return Find(inputs, name); }
  [[nodiscard]] const TensorSpec* FindOutput(std::string_view name) const { return Find(outputs, name); }

  friend bool operator==(const ModelSignature&, const ModelSignature&) = default;

 private:
  static const TensorSpec* Find(const std::vector<TensorSpec>& specs, std::string_view name) {
    for (const TensorSpec& spec : specs) {
      if (spec.name == name) return &spec;
    }
    return nullptr;
  }
};

}  // namespace tandem
