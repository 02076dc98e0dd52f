#include "bench/training/onnx_networks.h"

#include <cmath>
#include <random>
#include <utility>

#include "api/base/format.h"

namespace tandem::bench {
namespace {

using Shape = std::vector<std::int64_t>;
using Values = std::vector<std::string>;

constexpr std::int64_t kOperatorSet = 17;
constexpr std::int64_t kIrVersion = 8;

// Writes a graph node by node. A value has the name of its node.
class GraphWriter {
 public:
  explicit GraphWriter(std::uint64_t seed) : random_(seed) {
    model_.set_ir_version(kIrVersion);
    model_.add_opset_import()->set_version(kOperatorSet);
    model_.mutable_graph()->set_name("network");
  }

  std::string Input(const Network& network) {
    AddInfo(*model_.mutable_graph()->add_input(), "x",
            network.tokens ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT, network.example);
    return "x";
  }
  onnx::ModelProto Finish(const std::string& value, const Shape& shape) {
    auto* node = AddNode("Identity", {value});
    node->set_output(0, "scores");
    AddInfo(*model_.mutable_graph()->add_output(), "scores", onnx::TensorProto::FLOAT, shape);
    return std::move(model_);
  }

  // Normally distributed around `mean`.
  std::string Weight(const std::string& name, const Shape& shape, float deviation, float mean = 0) {
    auto* tensor = AddInitializer(name, onnx::TensorProto::FLOAT, shape);
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    std::vector<float> numbers(static_cast<std::size_t>(size), mean);
    std::normal_distribution<float> around(mean, deviation);
    for (float& number : numbers) number = deviation == 0 ? mean : around(random_);
    tensor->set_raw_data(numbers.data(), numbers.size() * sizeof(float));
    return name;
  }
  std::string Numbers(const Shape& numbers) {
    auto* tensor = AddInitializer(Format("numbers_{}", ++count_), onnx::TensorProto::INT64,
                                  {static_cast<std::int64_t>(numbers.size())});
    tensor->set_raw_data(numbers.data(), numbers.size() * sizeof(std::int64_t));
    return tensor->name();
  }
  std::string Scalar(float number) {
    auto* tensor = AddInitializer(Format("scalar_{}", ++count_), onnx::TensorProto::FLOAT, {});
    tensor->set_raw_data(&number, sizeof number);
    return tensor->name();
  }

  std::string Node(const std::string& op, const Values& inputs) { return AddNode(op, inputs)->output(0); }
  // Attributes of the last node.
  GraphWriter& With(const std::string& name, std::int64_t value) {
    auto* attribute = AddAttribute(name, onnx::AttributeProto::INT);
    attribute->set_i(value);
    return *this;
  }
  GraphWriter& With(const std::string& name, const Shape& values) {
    auto* attribute = AddAttribute(name, onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute->add_ints(value);
    return *this;
  }
  GraphWriter& With(const std::string& name, float value) {
    auto* attribute = AddAttribute(name, onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
    return *this;
  }

 private:
  onnx::NodeProto* AddNode(const std::string& op, const Values& inputs) {
    auto* node = model_.mutable_graph()->add_node();
    node->set_op_type(op);
    node->set_name(Format("{}_{}", op, ++count_));
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(node->name());
    return node;
  }
  onnx::AttributeProto* AddAttribute(const std::string& name, onnx::AttributeProto::AttributeType type) {
    auto* attribute = model_.mutable_graph()->mutable_node()->rbegin()->add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
  }
  onnx::TensorProto* AddInitializer(const std::string& name, onnx::TensorProto::DataType type, const Shape& shape) {
    auto* tensor = model_.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (const std::int64_t extent : shape) tensor->add_dims(extent);
    return tensor;
  }
  static void AddInfo(onnx::ValueInfoProto& info, const std::string& name, onnx::TensorProto::DataType type,
                      const Shape& shape) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape()->add_dim()->set_dim_param("batch");
    for (const std::int64_t extent : shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  }

  onnx::ModelProto model_;
  std::mt19937_64 random_;
  int count_ = 0;
};

struct ConvolutionForm {
  std::int64_t in;
  std::int64_t out;
  std::int64_t kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool bias = false;
};

std::string Convolution(GraphWriter& graph, const std::string& name, const std::string& x,
                        const ConvolutionForm& form) {
  const auto fan_in = static_cast<float>(form.in * form.kernel * form.kernel);
  Values inputs{x,
                graph.Weight(name + ".weight", {form.out, form.in, form.kernel, form.kernel}, std::sqrt(2 / fan_in))};
  if (form.bias) inputs.push_back(graph.Weight(name + ".bias", {form.out}, 0));
  const std::string y = graph.Node("Conv", inputs);
  graph.With("dilations", Shape{1, 1}).With("group", std::int64_t{1});
  graph.With("kernel_shape", Shape{form.kernel, form.kernel}).With("strides", Shape{form.stride, form.stride});
  graph.With("pads", Shape{form.padding, form.padding, form.padding, form.padding});
  return y;
}

std::string MaxPool(GraphWriter& graph, const std::string& x, std::int64_t padding, bool ceiling) {
  const std::string y = graph.Node("MaxPool", {x});
  graph.With("kernel_shape", Shape{3, 3}).With("strides", Shape{2, 2});
  graph.With("pads", Shape{padding, padding, padding, padding}).With("ceil_mode", std::int64_t{ceiling});
  return y;
}

onnx::ModelProto SqueezeNet(const Network& network, std::uint64_t seed) {
  GraphWriter graph(seed);
  const auto convolve = [&](const std::string& name, const std::string& x, ConvolutionForm form) {
    form.bias = true;
    return graph.Node("Relu", {Convolution(graph, name, x, form)});
  };
  std::string x = convolve("first", graph.Input(network), {.in = 3, .out = 64, .kernel = 3, .stride = 2});
  std::int64_t channels = 64;
  int number = 0;
  for (const Fire& fire : kFires) {
    if (fire.pool) x = MaxPool(graph, x, 0, true);
    const std::string name = Format("fire{}.", ++number);
    x = convolve(name + "squeeze", x, {.in = channels, .out = fire.squeeze, .kernel = 1});
    const std::string narrow = convolve(name + "expand1", x, {.in = fire.squeeze, .out = fire.expand, .kernel = 1});
    const std::string wide =
        convolve(name + "expand3", x, {.in = fire.squeeze, .out = fire.expand, .kernel = 3, .padding = 1});
    x = graph.Node("Concat", {narrow, wide});
    graph.With("axis", std::int64_t{1});
    channels = 2 * fire.expand;
  }
  x = graph.Node("Dropout", {x, graph.Scalar(0.5F)});
  x = convolve("last", x, {.in = channels, .out = network.classes, .kernel = 1});
  x = graph.Node("GlobalAveragePool", {x});
  x = graph.Node("Flatten", {x});
  graph.With("axis", std::int64_t{1});
  return graph.Finish(x, {network.classes});
}

std::string Normalised(GraphWriter& graph, const std::string& name, const std::string& x, std::int64_t channels) {
  const std::string y = graph.Node(
      "BatchNormalization",
      {x, graph.Weight(name + ".weight", {channels}, 0, 1), graph.Weight(name + ".bias", {channels}, 0),
       graph.Weight(name + ".running_mean", {channels}, 0), graph.Weight(name + ".running_var", {channels}, 0, 1)});
  graph.With("epsilon", 1e-5F).With("momentum", 0.9F);
  return y;
}

std::string Bottleneck(GraphWriter& graph, const std::string& name, const std::string& x, std::int64_t in,
                       const ResidualStage& stage, std::int64_t stride) {
  const std::int64_t inner = stage.channels;
  const std::int64_t out = 4 * inner;
  std::string y = Convolution(graph, name + ".conv1", x, {.in = in, .out = inner, .kernel = 1});
  y = graph.Node("Relu", {Normalised(graph, name + ".norm1", y, inner)});
  y = Convolution(graph, name + ".conv2", y, {.in = inner, .out = inner, .kernel = 3, .stride = stride, .padding = 1});
  y = graph.Node("Relu", {Normalised(graph, name + ".norm2", y, inner)});
  y = Convolution(graph, name + ".conv3", y, {.in = inner, .out = out, .kernel = 1});
  y = Normalised(graph, name + ".norm3", y, out);
  std::string beside = x;
  if (in != out) {
    beside = Convolution(graph, name + ".conv4", x, {.in = in, .out = out, .kernel = 1, .stride = stride});
    beside = Normalised(graph, name + ".norm4", beside, out);
  }
  return graph.Node("Relu", {graph.Node("Add", {y, beside})});
}

onnx::ModelProto ResNet50(const Network& network, std::uint64_t seed) {
  GraphWriter graph(seed);
  std::string x =
      Convolution(graph, "first", graph.Input(network), {.in = 3, .out = 64, .kernel = 7, .stride = 2, .padding = 3});
  x = MaxPool(graph, graph.Node("Relu", {Normalised(graph, "norm", x, 64)}), 1, false);
  std::int64_t channels = 64;
  int number = 0;
  for (const ResidualStage& stage : kStages) {
    for (std::int64_t block = 0; block < stage.blocks; ++block) {
      x = Bottleneck(graph, Format("block{}", ++number), x, channels, stage, block == 0 ? stage.stride : 1);
      channels = 4 * stage.channels;
    }
  }
  x = graph.Node("Flatten", {graph.Node("GlobalAveragePool", {x})});
  graph.With("axis", std::int64_t{1});
  x = graph.Node("Gemm", {x, graph.Weight("last.weight", {network.classes, channels}, 0.02F),
                          graph.Weight("last.bias", {network.classes}, 0)});
  graph.With("transB", std::int64_t{1});
  return graph.Finish(x, {network.classes});
}

// Two convolutions beside the way past them.
std::string BasicBlock(GraphWriter& graph, const std::string& name, const std::string& x, std::int64_t in,
                       std::int64_t out) {
  const std::int64_t stride = in == out ? 1 : 2;
  std::string y =
      Convolution(graph, name + ".conv1", x, {.in = in, .out = out, .kernel = 3, .stride = stride, .padding = 1});
  y = graph.Node("Relu", {Normalised(graph, name + ".norm1", y, out)});
  y = Convolution(graph, name + ".conv2", y, {.in = out, .out = out, .kernel = 3, .padding = 1});
  y = Normalised(graph, name + ".norm2", y, out);
  std::string beside = x;
  if (in != out) {
    beside = Convolution(graph, name + ".conv3", x, {.in = in, .out = out, .kernel = 1, .stride = stride});
    beside = Normalised(graph, name + ".norm3", beside, out);
  }
  return graph.Node("Relu", {graph.Node("Add", {y, beside})});
}

onnx::ModelProto DeepResNet(const Network& network, std::int64_t blocks, std::uint64_t seed) {
  GraphWriter graph(seed);
  std::int64_t channels = 16;
  std::string x =
      Convolution(graph, "first", graph.Input(network), {.in = 3, .out = channels, .kernel = 3, .padding = 1});
  x = graph.Node("Relu", {Normalised(graph, "norm", x, channels)});
  int number = 0;
  for (const std::int64_t stage : {16, 32, 64}) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      x = BasicBlock(graph, Format("block{}", ++number), x, channels, stage);
      channels = stage;
    }
  }
  x = graph.Node("Flatten", {graph.Node("GlobalAveragePool", {x})});
  graph.With("axis", std::int64_t{1});
  x = graph.Node("Gemm", {x, graph.Weight("last.weight", {network.classes, channels}, 0.02F),
                          graph.Weight("last.bias", {network.classes}, 0)});
  graph.With("transB", std::int64_t{1});
  return graph.Finish(x, {network.classes});
}

// A dense layer over the last dimension, as it is exported for more than two dimensions.
std::string Dense(GraphWriter& graph, const std::string& name, const std::string& x, std::int64_t in,
                  std::int64_t out) {
  const std::string weight = graph.Weight(name + ".weight_t", {in, out}, 1 / std::sqrt(static_cast<float>(in)));
  return graph.Node("Add", {graph.Weight(name + ".bias", {out}, 0), graph.Node("MatMul", {x, weight})});
}

std::string LayerNormalised(GraphWriter& graph, const std::string& name, const std::string& x) {
  const std::string y = graph.Node("LayerNormalization", {x, graph.Weight(name + ".weight", {kWidth}, 0, 1),
                                                          graph.Weight(name + ".bias", {kWidth}, 0)});
  graph.With("axis", std::int64_t{-1}).With("epsilon", 1e-5F);
  return y;
}

std::string Attention(GraphWriter& graph, const std::string& name, const std::string& x) {
  const auto heads = [&](const char* part, const Shape& order) {
    const std::string dense = Dense(graph, name + part, x, kWidth, kWidth);
    const std::string split = graph.Node("Reshape", {dense, graph.Numbers({0, 0, kHeads, kWidth / kHeads})});
    const std::string turned = graph.Node("Transpose", {split});
    graph.With("perm", order);
    return turned;
  };
  const std::string query = heads(".query", {0, 2, 1, 3});
  const std::string key = heads(".key", {0, 2, 3, 1});
  const std::string value = heads(".value", {0, 2, 1, 3});
  const std::string products = graph.Node("MatMul", {query, key});
  const std::string scaled =
      graph.Node("Div", {products, graph.Scalar(std::sqrt(static_cast<float>(kWidth / kHeads)))});
  const std::string shares = graph.Node("Softmax", {scaled});
  graph.With("axis", std::int64_t{-1});
  const std::string mixed = graph.Node("Transpose", {graph.Node("MatMul", {shares, value})});
  graph.With("perm", Shape{0, 2, 1, 3});
  const std::string joined = graph.Node("Reshape", {mixed, graph.Numbers({0, 0, kWidth})});
  return Dense(graph, name + ".out", joined, kWidth, kWidth);
}

// Exported for operator sets that have no Gelu.
std::string Gelu(GraphWriter& graph, const std::string& x) {
  const std::string error = graph.Node("Erf", {graph.Node("Div", {x, graph.Scalar(std::sqrt(2.0F))})});
  const std::string product = graph.Node("Mul", {x, graph.Node("Add", {error, graph.Scalar(1)})});
  return graph.Node("Mul", {product, graph.Scalar(0.5F)});
}

onnx::ModelProto Transformer(const Network& network, std::uint64_t seed) {
  GraphWriter graph(seed);
  const std::string tokens = graph.Input(network);
  std::string x = graph.Node("Gather", {graph.Weight("words.weight", {kVocabulary, kWidth}, 0.02F), tokens});
  x = graph.Node("Add", {x, graph.Weight("places", {1, kTokens, kWidth}, 0.02F)});
  for (std::int64_t layer = 1; layer <= kLayers; ++layer) {
    const std::string name = Format("layer{}", layer);
    x = graph.Node("Add", {x, Attention(graph, name, LayerNormalised(graph, name + ".norm1", x))});
    std::string y = Dense(graph, name + ".inner", LayerNormalised(graph, name + ".norm2", x), kWidth, kInner);
    y = Dense(graph, name + ".outer", Gelu(graph, y), kInner, kWidth);
    x = graph.Node("Add", {x, y});
  }
  x = graph.Node("ReduceMean", {LayerNormalised(graph, "norm", x)});
  graph.With("axes", Shape{1}).With("keepdims", std::int64_t{0});
  x = graph.Node("Gemm", {x, graph.Weight("last.weight", {network.classes, kWidth}, 0.02F),
                          graph.Weight("last.bias", {network.classes}, 0)});
  graph.With("transB", std::int64_t{1});
  return graph.Finish(x, {network.classes});
}

}  // namespace

onnx::ModelProto OnnxNetwork(const Network& network, std::uint64_t seed) {
  if (network.name == "squeezenet") return SqueezeNet(network, seed);
  if (network.name == "resnet50") return ResNet50(network, seed);
  if (network.name == "transformer") return Transformer(network, seed);
  return DeepResNet(network, BlocksOf(network).value(), seed);
}

}  // namespace tandem::bench
