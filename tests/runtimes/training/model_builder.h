#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

namespace tandem::training {

// Builds small ONNX models, for tests.
class ModelBuilder {
 public:
  ModelBuilder();

  // -1: a dimension that is not fixed.
  ModelBuilder& Input(const std::string& name, const std::vector<std::int64_t>& shape);
  ModelBuilder& Output(const std::string& name, const std::vector<std::int64_t>& shape);
  ModelBuilder& Weight(const std::string& name, const at::Tensor& value);
  ModelBuilder& Node(const std::string& op, std::initializer_list<const char*> inputs,
                     std::initializer_list<const char*> outputs);
  // An attribute of the last node.
  ModelBuilder& With(const std::string& name, std::int64_t value);
  ModelBuilder& With(const std::string& name, std::initializer_list<std::int64_t> values);

  [[nodiscard]] const onnx::ModelProto& model() const { return model_; }

 private:
  onnx::ModelProto model_;
};

// softmax(relu(x·w1 + b1)·w2 + b2), [batch,4] to [batch,3], with weights by `seed`.
[[nodiscard]] onnx::ModelProto SmallNetwork(std::uint64_t seed = 1);

// [batch,3,16,16] to [batch,10] by so many residual blocks of two convolutions with batch normalisation, and drop-out
// before the last layer.
[[nodiscard]] onnx::ModelProto ResidualNetwork(int blocks);

}  // namespace tandem::training
