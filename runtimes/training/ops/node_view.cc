#include "runtimes/training/ops/node_view.h"

#include <algorithm>

#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {

const onnx::AttributeProto* NodeView::Take(std::string_view name, onnx::AttributeProto::AttributeType type) {
  read_.emplace(name);
  const auto found = std::ranges::find(node_.attribute(), name, &onnx::AttributeProto::name);
  if (found == node_.attribute().end()) return nullptr;
  if (found->type() == type) return &*found;
  mistyped_ = name;
  return nullptr;
}

bool NodeView::Has(std::string_view name) const {
  return std::ranges::contains(node_.attribute(), name, &onnx::AttributeProto::name);
}

std::int64_t NodeView::Int(std::string_view name, std::int64_t absent) {
  const auto* attribute = Take(name, onnx::AttributeProto::INT);
  return attribute ? attribute->i() : absent;
}

double NodeView::Float(std::string_view name, double absent) {
  const auto* attribute = Take(name, onnx::AttributeProto::FLOAT);
  return attribute ? attribute->f() : absent;
}

std::string NodeView::Text(std::string_view name, std::string_view absent) {
  const auto* attribute = Take(name, onnx::AttributeProto::STRING);
  return attribute ? attribute->s() : std::string(absent);
}

std::vector<std::int64_t> NodeView::Ints(std::string_view name) {
  const auto* attribute = Take(name, onnx::AttributeProto::INTS);
  if (!attribute) return {};
  return {attribute->ints().begin(), attribute->ints().end()};
}

std::vector<double> NodeView::Floats(std::string_view name) {
  const auto* attribute = Take(name, onnx::AttributeProto::FLOATS);
  if (!attribute) return {};
  return {attribute->floats().begin(), attribute->floats().end()};
}

std::vector<std::string> NodeView::Texts(std::string_view name) {
  const auto* attribute = Take(name, onnx::AttributeProto::STRINGS);
  if (!attribute) return {};
  return {attribute->strings().begin(), attribute->strings().end()};
}

Result<std::optional<at::Tensor>> NodeView::TensorValue(std::string_view name) {
  const auto* attribute = Take(name, onnx::AttributeProto::TENSOR);
  if (!attribute || !attribute->has_t()) return std::nullopt;
  TANDEM_ASSIGN(at::Tensor tensor, ReadTensor(attribute->t()));
  return tensor;
}

Status NodeView::CheckAllRead() const {
  if (!mistyped_.empty()) return Invalid("attribute '{}' is of another type", mistyped_);
  for (const auto& attribute : node_.attribute()) {
    if (!read_.contains(attribute.name())) {
      return Fail(ErrorCode::kUnsupported, "attribute '{}' is not supported", attribute.name());
    }
  }
  return {};
}

}  // namespace tandem::training
