#include "bench/training/torch_networks.h"

#include <cmath>
#include <iterator>
#include <utility>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include "api/base/format.h"

namespace tandem::bench {
namespace {

namespace nn = torch::nn;
using torch::Tensor;

nn::Conv2d Convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                       std::int64_t padding, bool bias) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(padding).bias(bias));
}

class FireModule : public nn::Module {
 public:
  FireModule(std::int64_t in, const Fire& fire)
      : squeeze_(register_module("squeeze", Convolution(in, fire.squeeze, 1, 1, 0, true))),
        expand1_(register_module("expand1", Convolution(fire.squeeze, fire.expand, 1, 1, 0, true))),
        expand3_(register_module("expand3", Convolution(fire.squeeze, fire.expand, 3, 1, 1, true))) {}

  Tensor forward(const Tensor& x) {
    const Tensor squeezed = squeeze_(x).relu_();
    return torch::cat({expand1_(squeezed).relu_(), expand3_(squeezed).relu_()}, 1);
  }

 private:
  nn::Conv2d squeeze_;
  nn::Conv2d expand1_;
  nn::Conv2d expand3_;
};

class SqueezeNet final : public TorchNetwork {
 public:
  explicit SqueezeNet(std::int64_t classes) : first_(register_module("first", Convolution(3, 64, 3, 2, 0, true))) {
    std::int64_t channels = 64;
    for (const Fire& fire : kFires) {
      fires_.push_back(
          register_module(Format("fire{}", fires_.size() + 1), std::make_shared<FireModule>(channels, fire)));
      channels = 2 * fire.expand;
    }
    last_ = register_module("last", Convolution(channels, classes, 1, 1, 0, true));
  }

  Tensor Forward(Tensor x) override {
    x = first_(x).relu_();
    for (std::size_t i = 0; i < fires_.size(); ++i) {
      if (kFires[i].pool) x = torch::max_pool2d(x, 3, 2, 0, 1, /*ceil_mode=*/true);
      x = fires_[i]->forward(x);
    }
    x = last_(torch::dropout(x, 0.5, is_training())).relu_();
    return torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
  }

 private:
  nn::Conv2d first_;
  std::vector<std::shared_ptr<FireModule>> fires_;
  nn::Conv2d last_{nullptr};
};

class BottleneckModule : public nn::Module {
 public:
  BottleneckModule(std::int64_t in, std::int64_t inner, std::int64_t stride)
      : conv1_(register_module("conv1", Convolution(in, inner, 1, 1, 0, false))),
        norm1_(register_module("norm1", nn::BatchNorm2d(inner))),
        conv2_(register_module("conv2", Convolution(inner, inner, 3, stride, 1, false))),
        norm2_(register_module("norm2", nn::BatchNorm2d(inner))),
        conv3_(register_module("conv3", Convolution(inner, 4 * inner, 1, 1, 0, false))),
        norm3_(register_module("norm3", nn::BatchNorm2d(4 * inner))) {
    if (in == 4 * inner) return;
    conv4_ = register_module("conv4", Convolution(in, 4 * inner, 1, stride, 0, false));
    norm4_ = register_module("norm4", nn::BatchNorm2d(4 * inner));
  }

  Tensor forward(const Tensor& x) {
    Tensor y = norm1_(conv1_(x)).relu_();
    y = norm2_(conv2_(y)).relu_();
    y = norm3_(conv3_(y));
    return y.add_(conv4_.is_empty() ? x : norm4_(conv4_(x))).relu_();
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Conv2d conv3_;
  nn::BatchNorm2d norm3_;
  nn::Conv2d conv4_{nullptr};
  nn::BatchNorm2d norm4_{nullptr};
};

class ResNet50 final : public TorchNetwork {
 public:
  explicit ResNet50(std::int64_t classes)
      : first_(register_module("first", Convolution(3, 64, 7, 2, 3, false))),
        norm_(register_module("norm", nn::BatchNorm2d(64))) {
    std::int64_t channels = 64;
    for (const ResidualStage& stage : kStages) {
      for (std::int64_t block = 0; block < stage.blocks; ++block) {
        blocks_.push_back(register_module(
            Format("block{}", blocks_.size() + 1),
            std::make_shared<BottleneckModule>(channels, stage.channels, block == 0 ? stage.stride : 1)));
        channels = 4 * stage.channels;
      }
    }
    last_ = register_module("last", nn::Linear(channels, classes));
  }

  Tensor Forward(Tensor x) override {
    x = torch::max_pool2d(norm_(first_(x)).relu_(), 3, 2, 1);
    for (const auto& block : blocks_) x = block->forward(x);
    return last_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

 private:
  nn::Conv2d first_;
  nn::BatchNorm2d norm_;
  std::vector<std::shared_ptr<BottleneckModule>> blocks_;
  nn::Linear last_{nullptr};
};

nn::LayerNorm Normalisation() {
  return nn::LayerNorm(nn::LayerNormOptions({kWidth}));
}

class EncoderLayer : public nn::Module {
 public:
  EncoderLayer()
      : norm1_(register_module("norm1", Normalisation())),
        query_(register_module("query", nn::Linear(kWidth, kWidth))),
        key_(register_module("key", nn::Linear(kWidth, kWidth))),
        value_(register_module("value", nn::Linear(kWidth, kWidth))),
        out_(register_module("out", nn::Linear(kWidth, kWidth))),
        norm2_(register_module("norm2", Normalisation())),
        inner_(register_module("inner", nn::Linear(kWidth, kInner))),
        outer_(register_module("outer", nn::Linear(kInner, kWidth))) {}

  Tensor forward(const Tensor& x) {
    const Tensor attended = x + Attend(norm1_(x));
    return attended + outer_(torch::gelu(inner_(norm2_(attended))));
  }

 private:
  Tensor Attend(const Tensor& x) {
    const auto heads = [&](nn::Linear& part) {
      return part(x).view({x.size(0), x.size(1), kHeads, kWidth / kHeads}).transpose(1, 2);
    };
    const Tensor products = torch::matmul(heads(query_), heads(key_).transpose(2, 3));
    const Tensor shares = torch::softmax(products / std::sqrt(static_cast<double>(kWidth / kHeads)), -1);
    return out_(torch::matmul(shares, heads(value_)).transpose(1, 2).reshape(x.sizes()));
  }

  nn::LayerNorm norm1_;
  nn::Linear query_;
  nn::Linear key_;
  nn::Linear value_;
  nn::Linear out_;
  nn::LayerNorm norm2_;
  nn::Linear inner_;
  nn::Linear outer_;
};

class Transformer final : public TorchNetwork {
 public:
  explicit Transformer(std::int64_t classes)
      : words_(register_module("words", nn::Embedding(kVocabulary, kWidth))),
        places_(register_parameter("places", torch::randn({1, kTokens, kWidth}) * 0.02)) {
    for (std::int64_t layer = 1; layer <= kLayers; ++layer) {
      layers_.push_back(register_module(Format("layer{}", layer), std::make_shared<EncoderLayer>()));
    }
    norm_ = register_module("norm", Normalisation());
    last_ = register_module("last", nn::Linear(kWidth, classes));
  }

  Tensor Forward(Tensor x) override {
    x = words_(x) + places_;
    for (const auto& layer : layers_) x = layer->forward(x);
    return last_(norm_(x).mean(1));
  }

 private:
  nn::Embedding words_;
  Tensor places_;
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  nn::LayerNorm norm_{nullptr};
  nn::Linear last_{nullptr};
};

}  // namespace

std::shared_ptr<TorchNetwork> MakeTorchNetwork(const Network& network) {
  if (network.name == "squeezenet") return std::make_shared<SqueezeNet>(network.classes);
  if (network.name == "resnet50") return std::make_shared<ResNet50>(network.classes);
  return std::make_shared<Transformer>(network.classes);
}

}  // namespace tandem::bench
