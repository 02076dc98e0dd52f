#pragma once

#include <string>
#include <vector>

#include <json/value.h>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"

namespace tandem::cli {

// The inputs and outputs in a model's metadata answer.
[[nodiscard]] Result<ModelSignature> SignatureFromMetadata(const Json::Value& metadata);

struct InputChoice {
  std::string name;
  std::string value;  // "@file.npy", or JSON: [1, 2, 3], "text".
};

struct ShapeChoice {
  std::string name;
  Shape shape;
};

// "x=@file.npy" and "x:1,3,224,224".
[[nodiscard]] Result<InputChoice> ParseInputChoice(const std::string& text);
[[nodiscard]] Result<ShapeChoice> ParseShapeChoice(const std::string& text);

// The tensor for one input: from its choice, else random values from `seed`.
// Variable dimensions are 1 unless `shapes` says otherwise.
[[nodiscard]] Result<Tensor> MakeInput(const TensorSpec& spec, const std::vector<InputChoice>& choices,
                                       const std::vector<ShapeChoice>& shapes, unsigned seed);

}  // namespace tandem::cli
