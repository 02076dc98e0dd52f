#include "runtimes/training/estimate/meta_fallback.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

namespace tandem::training {
namespace {

using torch::jit::Stack;

// An operator whose inputs are larger is not computed on zeros: that would take as long as training.
constexpr std::uint64_t kMostComputed = std::uint64_t{64} << 20;

// Replaces the tensors of an operator's arguments, wherever they stand.
template <typename Function>
c10::IValue WithTensors(const c10::IValue& value, Function replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorVector()) list.push_back(replace(each));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& each : value.toOptionalTensorVector()) {
      list.push_back(each ? std::optional(replace(*each)) : std::nullopt);
    }
    return list;
  }
  return value;
}

Stack ArgumentsOf(const c10::OperatorHandle& op, const Stack& stack) {
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  return {stack.end() - count, stack.end()};
}

template <typename Function>
Stack Replaced(const Stack& values, Function replace) {
  Stack replaced;
  for (const c10::IValue& value : values) replaced.push_back(WithTensors(value, replace));
  return replaced;
}

// One tensor made anew of numbers taken one by one.
bool IsElementwise(const c10::OperatorHandle& op) {
  const auto& schema = op.schema();
  return op.hasTag(at::Tag::pointwise) && !schema.is_mutable() && schema.returns().size() == 1 &&
         schema.returns()[0].type()->kind() == c10::TypeKind::TensorType;
}

at::Tensor Elementwise(const c10::OperatorHandle& op, const Stack& arguments) {
  std::vector<std::int64_t> sizes;
  // Of no numbers, the type of the result is still found.
  Stack none = Replaced(arguments, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    sizes = at::infer_size(sizes, tensor.sizes());
    return at::empty(tensor.dim() == 0 ? at::IntArrayRef() : at::IntArrayRef({0}), tensor.options().device(at::kCPU));
  });
  op.callBoxed(none);
  return at::empty(sizes, none.front().toTensor().options().device(at::kMeta));
}

Stack OnZeros(const c10::OperatorHandle& op, const Stack& arguments) {
  std::uint64_t bytes = 0;
  const auto count = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.is_meta()) bytes += tensor.nbytes();
    return tensor;
  };
  (void)Replaced(arguments, count);
  TORCH_CHECK(bytes <= kMostComputed, "what ", op.operator_name(), " takes ", kNotFromShapes, ", and ", bytes,
              " bytes are too much to try it");
  Stack zeros = Replaced(arguments, [](const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_meta()) return tensor;
    return at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
  });
  Stack results = zeros;
  op.callBoxed(results);
  const auto& returns = op.schema().returns();
  // What an operator writes to is one of its arguments, and may have got another size.
  for (std::size_t i = 0; i < returns.size(); ++i) {
    const auto* alias = returns[i].alias_info();
    std::size_t written = arguments.size();
    for (std::size_t a = 0; alias != nullptr && a < arguments.size(); ++a) {
      const auto* of_argument = op.schema().arguments()[a].alias_info();
      if (of_argument != nullptr && *of_argument == *alias) written = a;
    }
    if (written == arguments.size() || !arguments[written].isTensor()) {
      results[i] = WithTensors(results[i], [](const at::Tensor& tensor) {
        if (!tensor.defined()) return tensor;
        return at::empty(tensor.sizes(), tensor.options().device(at::kMeta));
      });
      continue;
    }
    const at::Tensor computed = results[i].toTensor();
    const at::Tensor& given = arguments[written].toTensor();
    if (given.sizes() != computed.sizes()) given.set_(at::empty(computed.sizes(), given.options()));
    results[i] = given;
  }
  return results;
}

void Fallback(const c10::OperatorHandle& op, Stack* stack) {
  const Stack arguments = ArgumentsOf(op, *stack);
  Stack results = IsElementwise(op) ? Stack{c10::IValue(Elementwise(op, arguments))} : OnZeros(op, arguments);
  torch::jit::drop(*stack, arguments.size());
  stack->insert(stack->end(), results.begin(), results.end());
}

// Whether its results, or their sizes, depend on numbers that are not there.
bool ReadsNumbers(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape);
}

bool NeedsFallback(const c10::OperatorHandle& op) {
  if (!op.hasSchema() || op.schema().returns().empty() || ReadsNumbers(op)) return false;
  if (!op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return false;
  using enum c10::DispatchKey;
  for (const c10::DispatchKey key :
       {Meta, CompositeExplicitAutograd, CompositeExplicitAutogradNonFunctional, CompositeImplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return false;
  }
  return true;
}

}  // namespace

void AddMetaFallbacks(torch::Library& library) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findOp(name);
    if (!op || !NeedsFallback(*op)) continue;
    library.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&Fallback>());
  }
}

}  // namespace tandem::training
