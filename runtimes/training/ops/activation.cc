// Activation functions: one number in, one out.

#include <limits>
#include <optional>

#include <ATen/ATen.h>

#include "runtimes/training/ops/elementwise.h"
#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

Result<Kernel> MakeLeakyRelu(NodeView& node) {
  const double slope = node.Float("alpha", 0.01);
  return [slope](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {at::leaky_relu(in[0], slope)}; };
}

at::Tensor PRelu(const at::Tensor& x, const at::Tensor& slope) {
  return at::where(x.ge(0), x, x.mul(slope));
}

Result<Kernel> MakeElu(NodeView& node) {
  const double alpha = node.Float("alpha", 1.0);
  return [alpha](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {at::elu(in[0], alpha)}; };
}

Result<Kernel> MakeCelu(NodeView& node) {
  const double alpha = node.Float("alpha", 1.0);
  return [alpha](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {at::celu(in[0], alpha)}; };
}

Result<Kernel> MakeSelu(NodeView& node) {
  const double alpha = node.Float("alpha", 1.67326319217681884765625);
  const double gamma = node.Float("gamma", 1.05070102214813232421875);
  return [alpha, gamma](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {at::elu(in[0], alpha, gamma)};
  };
}

Result<Kernel> MakeThresholdedRelu(NodeView& node) {
  const double alpha = node.Float("alpha", 1.0);
  return
      [alpha](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {at::threshold(in[0], alpha, 0)}; };
}

Result<Kernel> MakeHardSigmoid(NodeView& node) {
  const double alpha = node.Float("alpha", 0.2);
  const double beta = node.Float("beta", 0.5);
  return [alpha, beta](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {in[0].mul(alpha).add(beta).clamp(0, 1)};
  };
}

at::Tensor Softsign(const at::Tensor& x) {
  return x.div(x.abs().add(1));
}

at::Tensor Softplus(const at::Tensor& x) {
  return at::softplus(x);
}

Result<Kernel> MakeShrink(NodeView& node) {
  const double lambda = node.Float("lambd", 0.5);
  const double bias = node.Float("bias", 0.0);
  return [lambda, bias](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const at::Tensor above = at::where(x.gt(lambda), x.sub(bias), at::zeros_like(x));
    return {at::where(x.lt(-lambda), x.add(bias), above).to(x.scalar_type())};
  };
}

Result<Kernel> MakeGelu(NodeView& node) {
  const std::string approximate = node.Text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") return Invalid("approximate is '{}'", approximate);
  return [approximate](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {at::gelu(in[0], approximate)};
  };
}

// Bounds are attributes before opset 11, and inputs from then on.
Result<Kernel> MakeClip(NodeView& node) {
  if (node.opset() < 11) {
    const double low = node.Float("min", std::numeric_limits<float>::lowest());
    const double high = node.Float("max", std::numeric_limits<float>::max());
    return [low, high](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
      return {at::clamp(in[0], low, high)};
    };
  }
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    std::optional<at::Tensor> bounds[2];
    std::optional<at::Scalar> numbers[2];
    bool learnt = false;
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor bound = Optional(in, i + 1);
      if (!bound.defined()) continue;
      Require(bound.numel() == 1, "a bound must be one number");
      bounds[i] = bound.reshape({});
      numbers[i] = bound.item();
      learnt |= bound.requires_grad();
    }
    if (!bounds[0] && !bounds[1]) return {in[0]};
    return {learnt ? at::clamp(in[0], bounds[0], bounds[1]) : at::clamp(in[0], numbers[0], numbers[1])};
  };
}

}  // namespace

void AddActivationOps(OpTable& table) {
  table.Add("Relu", {1, 1}, MakeUnary<at::relu>);
  table.Add("LeakyRelu", {1, 1}, MakeLeakyRelu);
  table.Add("PRelu", {2, 2}, MakeBinary<PRelu>);
  table.Add("Elu", {1, 1}, MakeElu);
  table.Add("Celu", {1, 1}, MakeCelu);
  table.Add("Selu", {1, 1}, MakeSelu);
  table.Add("ThresholdedRelu", {1, 1}, MakeThresholdedRelu);
  table.Add("Sigmoid", {1, 1}, MakeUnary<at::sigmoid>);
  table.Add("HardSigmoid", {1, 1}, MakeHardSigmoid);
  table.Add("HardSwish", {1, 1}, MakeUnary<at::hardswish>);
  table.Add("Tanh", {1, 1}, MakeUnary<at::tanh>);
  table.Add("Softplus", {1, 1}, MakeUnary<Softplus>);
  table.Add("Softsign", {1, 1}, MakeUnary<Softsign>);
  table.Add("Shrink", {1, 1}, MakeShrink);
  table.Add("Mish", {1, 1}, MakeUnary<at::mish>);
  table.Add("Gelu", {1, 1}, MakeGelu);
  table.Add("Clip", {1, 3}, MakeClip);
}

}  // namespace tandem::training
