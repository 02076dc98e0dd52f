#include "server/infer/prepare.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

// Requests that name no level wait behind those that do.
constexpr std::uint64_t kUnnamedPriority = std::numeric_limits<std::uint64_t>::max();

template <typename T, typename NameOf>
Status CheckUnique(const std::vector<T>& items, std::string_view kind, NameOf name_of) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (name_of(items[i]) == name_of(items[j])) {
        return Invalid("{} '{}' is given twice", kind, Excerpt(name_of(items[i])));
      }
    }
  }
  return {};
}

template <typename T>
std::string NamesOf(const std::vector<T>& specs) {
  std::string names;
  for (const auto& spec : specs) {
    if (!names.empty()) names += ", ";
    names += spec.name;
  }
  return names;
}

// A request that names a region which is not there is wrong itself; nothing it asked for is missing.
Result<std::shared_ptr<const SharedRegion>> NamedRegion(const SharedRegions& regions, const SharedRange& range) {
  auto region = regions.Find(range.region);
  if (!region) return Invalid("{}", region.error().message);
  return region;
}

Status CheckShape(const Tensor& tensor, const TensorSpec& spec, const BatchSettings& batching, bool may_be_empty) {
  const bool fits = tensor.shape.size() == spec.shape.size() &&
                    std::ranges::equal(tensor.shape, spec.shape, [](std::int64_t given, std::int64_t wanted) {
                      return given >= 0 && (wanted < 0 || given == wanted);
                    });
  if (!fits) {
    return Invalid("input '{}' has shape {}; the model takes {}", tensor.name, ShapeText(tensor.shape),
                   ShapeText(spec.shape));
  }
  if (batching.max_batch_size > 0 && (tensor.shape[0] < 1 || tensor.shape[0] > batching.max_batch_size)) {
    return Invalid("input '{}' has batch size {}; the model takes 1 to {}", tensor.name, tensor.shape[0],
                   batching.max_batch_size);
  }
  // Some kernels of ONNX Runtime read or write beyond such tensors, or never come back from them.
  for (std::size_t i = 0; i < spec.shape.size() && !may_be_empty; ++i) {
    if (tensor.shape[i] == 0 && spec.shape[i] != 0) {
      return Invalid("input '{}' has shape {}: dimension {} is 0, which this model's operators may not bear",
                     tensor.name, ShapeText(tensor.shape), i);
    }
  }
  return {};
}

// Copies an input out of shared memory. Nothing is allocated or read before its size is known to be right: the region
// may be far larger than what any request could bring.
Result<Bytes> ReadShared(const Tensor& tensor, const SharedRange& range, const SharedRegions& regions,
                         std::uint64_t& shared_bytes_left) {
  TANDEM_ASSIGN(const auto region, NamedRegion(regions, range));
  if (tensor.type != DataType::kBytes) {
    TANDEM_ASSIGN(const std::int64_t needed, ByteSize(tensor.type, tensor.shape));
    if (static_cast<std::uint64_t>(needed) != range.byte_size) {
      return Invalid("input '{}' of shape {} needs {} bytes but its range of region '{}' has {}", tensor.name,
                     ShapeText(tensor.shape), needed, range.region, range.byte_size);
    }
  }
  if (range.byte_size > shared_bytes_left) {
    return Fail(ErrorCode::kTooLarge,
                "input '{}': {} bytes in shared memory are more than the {} that are left of what "
                "one request may hold",
                tensor.name, range.byte_size, shared_bytes_left);
  }
  shared_bytes_left -= range.byte_size;
  TANDEM_ASSIGN(AlignedBuffer data, region->Read(range.offset, range.byte_size));
  return Bytes::Own(std::move(data));
}

Result<Tensor> ResolveInput(const InferInput& input, const TensorSpec& spec, const Servable& servable,
                            const SharedRegions& regions, std::uint64_t& shared_bytes_left) {
  Tensor tensor = input.tensor;
  if (tensor.type != spec.type) {
    return Invalid("input '{}' has datatype {}; the model takes {}", tensor.name, DataTypeName(tensor.type),
                   DataTypeName(spec.type));
  }
  TANDEM_TRY(CheckShape(tensor, spec, servable.batching(), servable.signature().may_be_empty));
  if (input.shared) {
    TANDEM_ASSIGN(tensor.data, ReadShared(tensor, *input.shared, regions, shared_bytes_left));
  }
  TANDEM_TRY(CheckTensorData(tensor));
  return tensor;
}

Result<std::vector<Tensor>> ResolveInputs(const InferRequest& request, const Servable& servable,
                                          const SharedRegions& regions, std::uint64_t max_shared_bytes) {
  const ModelSignature& signature = servable.signature();
  TANDEM_TRY(
      CheckUnique(request.inputs, "input", [](const InferInput& i) -> const std::string& { return i.tensor.name; }));
  for (const InferInput& input : request.inputs) {
    if (signature.FindInput(input.tensor.name) == nullptr) {
      return Invalid("model '{}' has no input '{}'; its inputs are: {}", servable.name(), Excerpt(input.tensor.name),
                     NamesOf(signature.inputs));
    }
  }
  std::vector<Tensor> inputs;
  inputs.reserve(signature.inputs.size());
  for (const TensorSpec& spec : signature.inputs) {
    const auto given = std::ranges::find(request.inputs, spec.name, [](const InferInput& i) { return i.tensor.name; });
    if (given == request.inputs.end()) {
      if (spec.optional) continue;
      return Invalid("model '{}' needs input '{}' ({} {}), which the request does not give", servable.name(), spec.name,
                     DataTypeName(spec.type), ShapeText(spec.shape));
    }
    TANDEM_ASSIGN(Tensor tensor, ResolveInput(*given, spec, servable, regions, max_shared_bytes));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Result<std::int64_t> BatchOf(const std::vector<Tensor>& inputs, const BatchSettings& batching) {
  if (batching.max_batch_size == 0 || inputs.empty()) return 1;
  for (const Tensor& tensor : inputs) {
    if (tensor.shape[0] != inputs.front().shape[0]) {
      return Invalid("input '{}' has batch size {} but input '{}' has {}", inputs.front().name, inputs.front().shape[0],
                     tensor.name, tensor.shape[0]);
    }
  }
  return inputs.front().shape[0];
}

Result<std::vector<std::string>> ResolveOutputs(const InferRequest& request, const Servable& servable,
                                                const SharedRegions& regions, OutputRegions& output_regions) {
  const ModelSignature& signature = servable.signature();
  std::vector<std::string> names;
  if (request.outputs.empty()) {
    for (const TensorSpec& spec : signature.outputs) names.push_back(spec.name);
    return names;
  }
  TANDEM_TRY(
      CheckUnique(request.outputs, "output", [](const RequestedOutput& o) -> const std::string& { return o.name; }));
  for (const RequestedOutput& output : request.outputs) {
    const TensorSpec* spec = signature.FindOutput(output.name);
    if (spec == nullptr) {
      return Invalid("model '{}' has no output '{}'; its outputs are: {}", servable.name(), Excerpt(output.name),
                     NamesOf(signature.outputs));
    }
    if (output.classification > 0 && spec->type == DataType::kBytes) {
      return Invalid("output '{}' is BYTES and cannot be classified", output.name);
    }
    // Found out now rather than after the compute.
    std::shared_ptr<const SharedRegion>& region = output_regions.emplace_back();
    if (output.shared) {
      TANDEM_ASSIGN(region, NamedRegion(regions, *output.shared));
      TANDEM_TRY(region->CheckRange(output.shared->offset, output.shared->byte_size));
    }
    names.push_back(output.name);
  }
  return names;
}

std::optional<MonotonicTime> After(const InferRequest& request, std::optional<std::chrono::microseconds> time) {
  if (!time || time->count() <= 0) return std::nullopt;
  return request.arrival + *time;
}

std::optional<MonotonicTime> Earlier(std::optional<MonotonicTime> a, std::optional<MonotonicTime> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

std::uint64_t ResolvePriority(std::uint64_t asked, const BatchSettings& batching) {
  const bool known = asked > 0 && (batching.priority_levels == 0 || asked <= batching.priority_levels);
  if (known) return asked;
  return batching.default_priority > 0 ? batching.default_priority : kUnnamedPriority;
}

Result<WorkItem> PrepareWork(const InferRequest& request, std::shared_ptr<Servable> servable,
                             const SharedRegions& regions, std::uint64_t max_shared_bytes,
                             OutputRegions& output_regions) {
  WorkItem item;
  TANDEM_ASSIGN(item.inputs, ResolveInputs(request, *servable, regions, max_shared_bytes));
  TANDEM_ASSIGN(item.outputs, ResolveOutputs(request, *servable, regions, output_regions));
  TANDEM_ASSIGN(item.batch, BatchOf(item.inputs, servable->batching()));
  item.priority = ResolvePriority(request.priority, servable->batching());
  item.deadline = request.deadline;
  item.cancel = request.cancel;
  item.servable = std::move(servable);
  return item;
}

std::optional<MonotonicTime> OwnDeadline(const InferRequest& request) {
  return Earlier(Earlier(request.deadline, After(request, request.timeout)), After(request, request.slo));
}

std::optional<MonotonicTime> ResolveDeadline(const InferRequest& request, const Servable& servable,
                                             std::optional<std::chrono::microseconds> default_slo) {
  if (const auto own = OwnDeadline(request)) return own;
  const auto models = Earlier(After(request, servable.batching().default_timeout), After(request, servable.slo()));
  return models ? models : After(request, default_slo);
}

}  // namespace tandem
