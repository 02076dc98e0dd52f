#include "bench/training/seeded_model.h"

#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <onnx/onnx_pb.h>

#include "bench/training/networks.h"
#include "bench/training/onnx_networks.h"
#include "runtimes/training/graph/model_file.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

constexpr float kDeviation = 0.1F;

// Of the initializers that say how long a constant is.
std::map<std::string, std::vector<std::int64_t>> Shapes(const onnx::GraphProto& graph) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (tensor.data_type() != onnx::TensorProto::INT64) continue;
    std::vector<std::int64_t> shape(tensor.int64_data().begin(), tensor.int64_data().end());
    if (shape.empty() && !tensor.raw_data().empty()) {
      shape.resize(tensor.raw_data().size() / sizeof(std::int64_t));
      tensor.raw_data().copy(reinterpret_cast<char*>(shape.data()), shape.size() * sizeof(std::int64_t));
    }
    shapes.emplace(tensor.name(), std::move(shape));
  }
  return shapes;
}

float FillOf(const onnx::NodeProto& node) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    const onnx::TensorProto& value = attribute.t();
    if (value.float_data_size() == 1) return value.float_data(0);
    float number = 0;
    if (value.raw_data().size() == sizeof number) {
      value.raw_data().copy(reinterpret_cast<char*>(&number), sizeof number);
    }
    return number;
  }
  return 0;
}

Result<onnx::ModelProto> Filled(const fs::path& file, std::uint64_t seed) {
  TANDEM_ASSIGN(onnx::ModelProto model, training::LoadModel(file));
  const auto shapes = Shapes(model.graph());
  std::mt19937_64 random(seed);
  std::map<std::string, at::Tensor> weights;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() != "ConstantOfShape") continue;
    const auto shape = shapes.find(node.input(0));
    if (shape == shapes.end()) continue;
    at::Tensor weight = at::empty(shape->second);
    std::normal_distribution<float> around(1, kDeviation);
    const float fill = FillOf(node);
    float* const numbers = weight.mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < weight.numel(); ++i) numbers[i] = fill * around(random);
    weights.emplace(node.output(0), std::move(weight));
  }
  TANDEM_TRY(training::PutWeights(weights, model));
  return model;
}

}  // namespace

Status WriteSeededModel(const std::string& network_or_file, std::uint64_t seed, const fs::path& to) {
  std::error_code ignored;
  fs::create_directories(to.parent_path(), ignored);
  if (fs::path(network_or_file).extension() == ".onnx") {
    TANDEM_ASSIGN(const onnx::ModelProto model, Filled(network_or_file, seed));
    return training::SaveModel(model, to);
  }
  TANDEM_ASSIGN(const Network network, FindNetwork(network_or_file));
  return training::SaveModel(OnnxNetwork(network, seed), to);
}

}  // namespace tandem::bench
