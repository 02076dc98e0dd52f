// Operators whose values are drawn.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

// Where a node draws from: its own source when it has a seed, else the run's.
class Source {
 public:
  static Source Read(NodeView& node) {
    Source source;
    if (!node.Has("seed")) return source;
    // Nodes before opset 13 and after have it as a number with and without a fraction.
    source.own_ = at::detail::createCPUGenerator(static_cast<std::uint64_t>(
        node.op() == "Dropout" ? node.Int("seed", 0) : static_cast<std::int64_t>(node.Float("seed", 0))));
    return source;
  }

  [[nodiscard]] std::optional<at::Generator> At(const RunMode& mode) const {
    if (own_.defined()) return own_;
    return mode.random.defined() ? std::optional(mode.random) : std::nullopt;
  }

 private:
  at::Generator own_;
};

struct DropoutForm {
  double ratio = 0.5;
  Source source;
  bool with_mask = false;
  bool mask_is_bool = true;
};

// Drops when the run trains or the graph itself says so.
Tensors Dropout(const DropoutForm& form, const RunMode& mode, std::span<const at::Tensor> in) {
  const at::Tensor& x = in[0];
  const at::Tensor given = Optional(in, 1);
  const at::Tensor told = Optional(in, 2);
  const double ratio = given.defined() ? NumberOf(given, "ratio") : form.ratio;
  Require(ratio >= 0 && ratio <= 1, "ratio is {}", ratio);
  const bool drops = ratio > 0 && (mode.training || (told.defined() && NumberOf(told, "training_mode") != 0));
  const auto mask_type = form.mask_is_bool ? at::kBool : x.scalar_type();
  if (!drops) {
    return form.with_mask ? Tensors{x, at::ones(x.sizes(), mask_type)} : Tensors{x};
  }
  at::Tensor noise = at::empty_like(x).detach();
  noise.bernoulli_(1 - ratio, form.source.At(mode));
  at::Tensor mask;
  if (form.with_mask) mask = noise.to(mask_type, /*non_blocking=*/false, /*copy=*/true);
  if (ratio < 1) noise.div_(1 - ratio);
  return {x.mul(noise), mask};
}

Result<Kernel> MakeDropout(NodeView& node) {
  const DropoutForm form{.ratio = node.Float("ratio", 0.5),
                         .source = Source::Read(node),
                         .with_mask = node.HasOutput(1),
                         .mask_is_bool = node.opset() >= 10};
  return [form](const RunMode& mode, std::span<const at::Tensor> in) -> Tensors { return Dropout(form, mode, in); };
}

// Numbers of a distribution with two parameters.
struct Drawing {
  bool normal = false;
  double first = 0;   // Mean or lower bound.
  double second = 1;  // Deviation or upper bound.
  Source source;

  [[nodiscard]] at::Tensor Draw(const RunMode& mode, at::IntArrayRef shape, at::ScalarType type) const {
    at::Tensor values = at::empty(shape, type);
    return normal ? values.normal_(first, second, source.At(mode)) : values.uniform_(first, second, source.At(mode));
  }
};

Result<Drawing> ReadDrawing(NodeView& node) {
  Drawing drawing{.normal = node.op().starts_with("RandomNormal"), .source = Source::Read(node)};
  drawing.first = node.Float(drawing.normal ? "mean" : "low", 0.0);
  drawing.second = node.Float(drawing.normal ? "scale" : "high", 1.0);
  return drawing;
}

Result<Kernel> MakeRandom(NodeView& node) {
  TANDEM_ASSIGN(const Drawing drawing, ReadDrawing(node));
  TANDEM_ASSIGN(const auto type, ScalarTypeOf(static_cast<int>(node.Int("dtype", onnx::TensorProto::FLOAT))));
  const auto shape = node.Ints("shape");
  return [drawing, type, shape](const RunMode& mode, std::span<const at::Tensor>) -> Tensors {
    return {drawing.Draw(mode, shape, type)};
  };
}

Result<std::optional<at::ScalarType>> ReadType(NodeView& node) {
  if (!node.Has("dtype")) return std::nullopt;
  TANDEM_ASSIGN(const at::ScalarType type, ScalarTypeOf(static_cast<int>(node.Int("dtype", 0))));
  return type;
}

Result<Kernel> MakeRandomLike(NodeView& node) {
  TANDEM_ASSIGN(const Drawing drawing, ReadDrawing(node));
  TANDEM_ASSIGN(const auto type, ReadType(node));
  return [drawing, type](const RunMode& mode, std::span<const at::Tensor> in) -> Tensors {
    return {drawing.Draw(mode, in[0].sizes(), type.value_or(in[0].scalar_type()))};
  };
}

Result<Kernel> MakeBernoulli(NodeView& node) {
  const Source source = Source::Read(node);
  TANDEM_ASSIGN(const auto type, ReadType(node));
  return [source, type](const RunMode& mode, std::span<const at::Tensor> in) -> Tensors {
    return {at::bernoulli(in[0].detach(), source.At(mode)).to(type.value_or(in[0].scalar_type()))};
  };
}

}  // namespace

void AddRandomOps(OpTable& table) {
  table.Add("Dropout", {1, 3, 2}, MakeDropout);
  table.Add("RandomNormal", {0, 0}, MakeRandom);
  table.Add("RandomUniform", {0, 0}, MakeRandom);
  table.Add("RandomNormalLike", {1, 1}, MakeRandomLike);
  table.Add("RandomUniformLike", {1, 1}, MakeRandomLike);
  table.Add("Bernoulli", {1, 1}, MakeBernoulli);
}

}  // namespace tandem::training
