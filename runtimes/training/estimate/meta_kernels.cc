#include "runtimes/training/estimate/meta_kernels.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/native/ConvUtils.h>
#include <torch/library.h>

#include "runtimes/training/estimate/meta_fallback.h"
#include "runtimes/training/estimate/meta_ledger.h"
#include "runtimes/training/estimate/workspace.h"

namespace tandem::training {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using MaybeTensor = std::optional<at::Tensor>;

at::Tensor Meta(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().device(at::kMeta));
}

// Holds memory as long as it lives.
at::Tensor Hold(std::uint64_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte).device(at::kMeta));
}

ConvolutionMachine Machine() {
  constexpr std::int64_t kWideVector = 16;
  constexpr std::int64_t kVector = 8;
  static const bool wide = at::get_cpu_capability() == "AVX512";
  return {.threads = at::get_num_threads(), .vector = wide ? kWideVector : kVector};
}

struct ConvolutionForm {
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  bool transposed = false;
  at::IntArrayRef output_padding;
  std::int64_t groups = 1;
};

bool AnyOver(at::IntArrayRef sizes, std::int64_t least) {
  return std::ranges::any_of(sizes, [least](std::int64_t size) { return size > least; });
}

ConvolutionShape ShapeOf(const ConvolutionForm& form, at::IntArrayRef in, at::IntArrayRef weight, at::IntArrayRef out,
                         at::ScalarType type) {
  return {.batch = in[0],
          .in_channels = in[1],
          .out_channels = out[1],
          .groups = form.groups,
          .in = in.slice(2).vec(),
          .out = out.slice(2).vec(),
          .kernel = weight.slice(2).vec(),
          .strided = AnyOver(form.stride, 1),
          .dilated = AnyOver(form.dilation, 1),
          .padded = AnyOver(form.padding, 0),
          .transposed = form.transposed,
          .element = c10::elementSize(type),
          .single_precision = type == at::kFloat};
}

std::vector<std::int64_t> OutputSizes(const ConvolutionForm& form, const at::Tensor& input, const at::Tensor& weight) {
  TORCH_CHECK(input.dim() == weight.dim() && input.dim() > 2, "a convolution of ", input.dim(), " by ", weight.dim(),
              " dimensions");
  if (form.transposed) {
    return at::native::conv_input_size(input.sizes(), weight.sizes(), form.padding, form.output_padding, form.stride,
                                       form.dilation, form.groups);
  }
  TORCH_CHECK(input.size(1) == weight.size(1) * form.groups, "the input has ", input.size(1),
              " channels, and the weight is for ", weight.size(1) * form.groups);
  return at::native::conv_output_size(input.sizes(), weight.sizes(), form.padding, form.stride, form.dilation);
}

at::Tensor Convolution(const at::Tensor& given, const at::Tensor& weight, const MaybeTensor&, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                       at::IntArrayRef output_padding, std::int64_t groups) {
  const ConvolutionForm form{stride, padding, dilation, transposed, output_padding, groups};
  const at::Tensor input = given.contiguous();
  const auto sizes = OutputSizes(form, input, weight);
  for (const std::int64_t size : sizes) TORCH_CHECK(size >= 0, "the kernel is larger than the input");
  const auto shape = ShapeOf(form, input.sizes(), weight.sizes(), sizes, input.scalar_type());
  if (IsBlocked(shape, Machine())) MetaLedger::NoteConvolution(shape);
  const auto workspace = ForwardWorkspace(shape, Machine());
  if (workspace.computing > 0) (void)Hold(workspace.computing);
  const at::Tensor held = Hold(workspace.finishing);
  return Meta(sizes, input);
}

Three ConvolutionBackward(const at::Tensor& given_gradient, const at::Tensor& given, const at::Tensor& weight,
                          at::OptionalIntArrayRef, at::IntArrayRef stride, at::IntArrayRef padding,
                          at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                          std::int64_t groups, std::array<bool, 3> wanted) {
  const ConvolutionForm form{stride, padding, dilation, transposed, output_padding, groups};
  const at::Tensor gradient = given_gradient.contiguous();
  const at::Tensor input = given.contiguous();
  const auto shape = ShapeOf(form, input.sizes(), weight.sizes(), gradient.sizes(), input.scalar_type());
  const ConvolutionMachine machine = Machine();
  Three results;
  if (wanted[0]) {
    const auto workspace = InputGradientWorkspace(shape, machine);
    if (workspace.computing > 0) (void)Hold(workspace.computing);
    const at::Tensor held = Hold(workspace.finishing);
    std::get<0>(results) = Meta(input.sizes(), input);
  }
  if (wanted[1] || wanted[2]) {
    const auto workspace = WeightGradientWorkspace(shape, machine);
    if (workspace.computing > 0) (void)Hold(workspace.computing);
    const at::Tensor held = Hold(workspace.finishing);
    if (wanted[1]) std::get<1>(results) = Meta(weight.sizes(), weight);
    if (wanted[2]) std::get<2>(results) = Meta({gradient.size(1)}, weight);
  }
  return results;
}

Three BatchNorm(const at::Tensor& input, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
                bool training, double, double) {
  const std::int64_t kept = training ? input.size(1) : 0;
  return {at::empty_like(input), Meta({kept}, input), Meta({kept}, input)};
}

Three BatchNormBackward(const at::Tensor& gradient, const at::Tensor& input, const MaybeTensor&, const MaybeTensor&,
                        const MaybeTensor&, const MaybeTensor&, const MaybeTensor&, bool, double,
                        std::array<bool, 3> wanted) {
  const at::Tensor held = gradient.contiguous();
  Three results;
  if (wanted[0]) std::get<0>(results) = at::empty_like(input);
  if (wanted[1]) std::get<1>(results) = Meta({input.size(1)}, input);
  if (wanted[2]) std::get<2>(results) = Meta({input.size(1)}, input);
  return results;
}

Three LayerNorm(const at::Tensor& given, at::IntArrayRef shape, const MaybeTensor&, const MaybeTensor&, double) {
  const at::Tensor input = given.contiguous();
  std::vector<std::int64_t> rows = input.sizes().vec();
  for (std::size_t d = rows.size() - shape.size(); d < rows.size(); ++d) rows[d] = 1;
  return {at::empty_like(input), Meta(rows, input), Meta(rows, input)};
}

Three LayerNormBackward(const at::Tensor& gradient, const at::Tensor& given, at::IntArrayRef shape, const at::Tensor&,
                        const at::Tensor&, const MaybeTensor&, const MaybeTensor&, std::array<bool, 3> wanted) {
  const at::Tensor input = given.contiguous();
  const at::Tensor held = gradient.contiguous();
  const at::Tensor sums =
      Hold(LayerNormGradientWorkspace(c10::multiply_integers(shape), input.element_size(), at::get_num_threads()));
  Three results;
  if (wanted[0]) std::get<0>(results) = at::empty_like(input);
  if (wanted[1]) std::get<1>(results) = Meta(shape, input);
  if (wanted[2]) std::get<2>(results) = Meta(shape, input);
  return results;
}

at::Tensor IndexSelect(const at::Tensor& x, std::int64_t dim, const at::Tensor& index) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  if (!sizes.empty()) sizes[static_cast<std::size_t>(at::maybe_wrap_dim(dim, x.dim()))] = index.numel();
  return Meta(sizes, x);
}

at::Tensor EmbeddingBackward(const at::Tensor& gradient, const at::Tensor&, std::int64_t rows, std::int64_t, bool) {
  const at::Tensor held = gradient.contiguous();
  return Meta({rows, gradient.size(-1)}, gradient);
}

// They change what is there.
void FusedSgd(at::TensorList, at::TensorList, at::TensorList, double, double, double, double, bool, bool, bool,
              const MaybeTensor&, const MaybeTensor&) {}
void FusedAdam(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList, double,
               double, double, double, double, bool, bool, const MaybeTensor&, const MaybeTensor&) {}

}  // namespace

void AddMetaKernels() {
  // Never destroyed: what it registered would go with it. Kept, although nobody reads it: else it is a leak.
  [[gnu::used]] static torch::Library* const library = [] {
    auto* const added = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Meta, __FILE__, __LINE__);
    added->impl("convolution", &Convolution);
    added->impl("convolution_backward", &ConvolutionBackward);
    added->impl("native_batch_norm", &BatchNorm);
    added->impl("native_batch_norm_backward", &BatchNormBackward);
    added->impl("native_layer_norm", &LayerNorm);
    added->impl("native_layer_norm_backward", &LayerNormBackward);
    added->impl("index_select", &IndexSelect);
    added->impl("embedding_dense_backward", &EmbeddingBackward);
    added->impl("_fused_sgd_", &FusedSgd);
    added->impl("_fused_adam_", &FusedAdam);
    added->impl("_fused_adamw_", &FusedAdam);
    AddMetaFallbacks(*added);
    return added;
  }();
}

}  // namespace tandem::training
