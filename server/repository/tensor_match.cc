#include "server/repository/tensor_match.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/wire/model_config_text.h"
#include "server/repository/model_name.h"

namespace tandem::repository {
namespace {

using inference::ModelConfig;
using inference::ModelInput;

Shape ToShape(const google::protobuf::RepeatedField<std::int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

// "TYPE_FP32 [3,224,224] with max_batch_size 8"
template <typename Spec>
std::string ConfigText(const Spec& spec, std::int64_t max_batch) {
  std::string text =
      spec.data_type() == inference::TYPE_INVALID ? "" : inference::DataType_Name(spec.data_type()) + " ";
  text += ShapeText(ToShape(spec.dims()));
  if (spec.has_reshape()) text += " reshaped to " + ShapeText(ToShape(spec.reshape().shape()));
  if (max_batch > 0) text += Format(" with max_batch_size {}", max_batch);
  return text;
}

std::string GraphText(const TensorSpec& spec) {
  return Format("{} {}", DataTypeName(spec.type), ShapeText(spec.shape));
}

std::string NameList(const std::vector<TensorSpec>& specs) {
  std::string text;
  for (const TensorSpec& spec : specs) {
    if (!text.empty()) text += ", ";
    text += Format("'{}'", Quotable(spec.name));
    if (text.size() > 300) return text + ", …";
  }
  return text.empty() ? "none" : text;
}

// A batch dimension is variable, unless the only batch ever sent is the one that the graph fixes.
bool IsBatchDimension(std::int64_t dim, std::int64_t max_batch) {
  return dim == -1 || (dim == 1 && max_batch == 1);
}

bool FitsGraph(const Shape& inner, const Shape& graph, std::int64_t max_batch) {
  const std::size_t batch = max_batch > 0 ? 1 : 0;
  if (graph.size() != inner.size() + batch) return false;
  if (batch > 0 && !IsBatchDimension(graph[0], max_batch)) return false;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (graph[i + batch] != -1 && graph[i + batch] != inner[i]) return false;
  }
  return true;
}

bool HoldsAsMuch(const Shape& a, const Shape& b) {
  const auto fixed = [](const Shape& shape) {
    Shape dims;
    std::ranges::copy_if(shape, std::back_inserter(dims), [](std::int64_t dim) { return dim >= 0; });
    return ElementCount(dims);
  };
  const auto count_a = fixed(a);
  const auto count_b = fixed(b);
  return count_a && count_b && *count_a == *count_b && std::ranges::count(a, -1) == std::ranges::count(b, -1);
}

// Fills in what `spec` leaves open, or says how it contradicts the graph's tensor.
template <typename Spec>
Status MatchOne(std::string_view kind, const TensorSpec& graph, std::int64_t max_batch, Spec& spec) {
  const auto contradiction = [&](std::string_view more) {
    return Invalid("config says {} '{}' is {}, the graph has {}{}", kind, Quotable(spec.name()),
                   ConfigText(spec, max_batch), GraphText(graph), more);
  };
  if (spec.data_type() != inference::TYPE_INVALID && FromConfigDataType(spec.data_type()) != graph.type) {
    return contradiction("");
  }
  if (spec.has_reshape() && !HoldsAsMuch(ToShape(spec.dims()), ToShape(spec.reshape().shape()))) {
    return Invalid("config says {} '{}' is {}, which hold different numbers of elements", kind, Quotable(spec.name()),
                   ConfigText(spec, max_batch));
  }
  if (spec.dims_size() == 0 && !spec.has_reshape()) {
    if (max_batch > 0 && (graph.shape.empty() || !IsBatchDimension(graph.shape[0], max_batch))) {
      return contradiction(", whose first dimension is not a variable batch");
    }
    for (std::size_t i = max_batch > 0 ? 1 : 0; i < graph.shape.size(); ++i) spec.add_dims(graph.shape[i]);
  }
  if (graph.unranked && spec.dims_size() == 0 && !spec.has_reshape()) {
    return Invalid("the graph does not say what shape {} '{}' has; say it in the configuration (dims)", kind,
                   Quotable(spec.name()));
  }
  // ONNX Runtime shows a tensor of unknown rank with no dimensions: there the configuration knows better.
  const bool unknown_rank = graph.unranked || (std::is_same_v<Spec, inference::ModelOutput> && graph.shape.empty());
  if (!unknown_rank &&
      !FitsGraph(ToShape(spec.has_reshape() ? spec.reshape().shape() : spec.dims()), graph.shape, max_batch)) {
    return contradiction(max_batch > 0 ? " (dims leave out the batch dimension, which must be variable)" : "");
  }
  if constexpr (std::is_same_v<Spec, ModelInput>) {
    if (spec.optional() && !graph.optional) {
      return Invalid("config says input '{}' is optional, the graph requires it", Quotable(spec.name()));
    }
    spec.set_optional(graph.optional);
  }
  spec.set_data_type(ToConfigDataType(graph.type));
  return {};
}

template <typename Spec>
Status MatchAll(std::string_view kind, const std::vector<TensorSpec>& graph, std::int64_t max_batch,
                google::protobuf::RepeatedPtrField<Spec>& specs, std::vector<TensorSpec>& served) {
  if (specs.empty()) {
    for (const TensorSpec& tensor : graph) specs.Add()->set_name(tensor.name);
  }
  for (const Spec& spec : specs) {
    if (std::ranges::none_of(graph, [&](const TensorSpec& tensor) { return tensor.name == spec.name(); })) {
      return Invalid("config names {} '{}', the graph has {}", kind, Quotable(spec.name()), NameList(graph));
    }
  }
  for (const TensorSpec& tensor : graph) {
    const auto spec = std::ranges::find_if(specs, [&](const Spec& s) { return s.name() == tensor.name; });
    if (spec == specs.end()) {
      if (std::is_same_v<Spec, inference::ModelOutput> || tensor.optional) continue;
      return Invalid("config does not list input '{}', the graph requires it as {}", Quotable(tensor.name),
                     GraphText(tensor));
    }
    TANDEM_TRY(MatchOne(kind, tensor, max_batch, *spec));
    TensorSpec as_served = tensor;
    as_served.shape = ToShape(spec->dims());
    as_served.unranked = false;
    if (max_batch > 0) as_served.shape.insert(as_served.shape.begin(), -1);
    served.push_back(std::move(as_served));
  }
  return {};
}

}  // namespace

Status MatchTensors(const ModelSignature& graph, ModelConfig& config, ModelSignature& signature) {
  signature = {.named_batch = graph.named_batch, .may_be_empty = graph.may_be_empty};
  TANDEM_TRY(MatchAll("input", graph.inputs, config.max_batch_size(), *config.mutable_input(), signature.inputs));
  return MatchAll("output", graph.outputs, config.max_batch_size(), *config.mutable_output(), signature.outputs);
}

}  // namespace tandem::repository
