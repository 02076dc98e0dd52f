#include "colocation/batch_assembly.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem {
namespace {

std::size_t BytesPrefix(std::span<const std::byte> data, std::int64_t elements) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    std::uint32_t length = 0;
    std::memcpy(&length, data.data() + at, sizeof(length));
    at += sizeof(length) + length;
  }
  return at;
}

Tensor JoinInput(std::span<const WorkItem> items, std::size_t index) {
  Tensor joined = items.front().inputs[index];
  joined.shape[0] = 0;
  std::size_t bytes = 0;
  for (const WorkItem& item : items) {
    bytes += item.inputs[index].data.size();
    joined.shape[0] += item.inputs[index].shape[0];
  }
  AlignedBuffer buffer(bytes);
  std::byte* out = buffer.data();
  for (const WorkItem& item : items) {
    const auto& view = item.inputs[index].data.view;
    out = std::ranges::copy(view, out).out;
  }
  joined.data = Bytes::Own(std::move(buffer));
  return joined;
}

// Cuts `rows` rows off the front of `rest`.
Tensor TakeRows(Tensor& rest, std::int64_t rows) {
  Tensor part = rest;
  part.shape[0] = rows;
  std::size_t bytes = 0;
  if (rest.type == DataType::kBytes) {
    std::int64_t elements = rows;
    for (std::size_t d = 1; d < rest.shape.size(); ++d) elements *= rest.shape[d];
    bytes = BytesPrefix(rest.data.view, elements);
  } else if (rest.shape[0] > 0) {
    bytes = rest.data.size() / static_cast<std::size_t>(rest.shape[0]) * static_cast<std::size_t>(rows);
  }
  part.data = rest.data.Part(0, bytes);
  rest.data = rest.data.Part(bytes, rest.data.size() - bytes);
  rest.shape[0] -= rows;
  return part;
}

const Tensor& Named(const std::vector<Tensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &Tensor::name);
}

}  // namespace

bool CanShareRun(const WorkItem& a, const WorkItem& b) {
  return std::ranges::equal(a.inputs, b.inputs, [](const Tensor& x, const Tensor& y) {
    return x.name == y.name && x.shape.size() == y.shape.size() &&
           std::equal(x.shape.begin() + 1, x.shape.end(), y.shape.begin() + 1);
  });
}

std::vector<Tensor> JoinInputs(std::span<const WorkItem> items) {
  if (items.size() == 1) return items.front().inputs;
  std::vector<Tensor> inputs;
  inputs.reserve(items.front().inputs.size());
  for (std::size_t i = 0; i < items.front().inputs.size(); ++i) inputs.push_back(JoinInput(items, i));
  return inputs;
}

std::vector<std::string> UnionOfOutputs(std::span<const WorkItem> items) {
  std::vector<std::string> names = items.front().outputs;
  for (const WorkItem& item : items.subspan(1)) {
    for (const std::string& name : item.outputs) {
      if (!std::ranges::contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

Result<std::vector<std::vector<Tensor>>> SplitOutputs(std::span<const WorkItem> items,
                                                      const std::vector<Tensor>& outputs) {
  if (items.size() == 1) return std::vector<std::vector<Tensor>>{outputs};
  std::int64_t total = 0;
  for (const WorkItem& item : items) total += item.batch;

  std::vector<Tensor> rest = outputs;
  for (const Tensor& output : rest) {
    if (output.shape.empty() || output.shape[0] != total) {
      return Fail(ErrorCode::kInternal, "model '{}': output '{}' has shape {} for a batch of {}; it cannot be batched",
                  items.front().servable->name(), output.name, ShapeText(output.shape), total);
    }
  }
  std::vector<std::vector<Tensor>> split;
  split.reserve(items.size());
  for (const WorkItem& item : items) {
    std::vector<Tensor> rows;
    rows.reserve(rest.size());
    for (Tensor& output : rest) rows.push_back(TakeRows(output, item.batch));
    std::vector<Tensor> wanted;
    wanted.reserve(item.outputs.size());
    for (const std::string& name : item.outputs) wanted.push_back(Named(rows, name));
    split.push_back(std::move(wanted));
  }
  return split;
}

}  // namespace tandem
