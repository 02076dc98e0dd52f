#include "colocation/batch_assembly.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
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

// What the item named, in its order, out of its rows.
Result<std::vector<Tensor>> WantedOf(const WorkItem& item, std::span<const Tensor> rows,
                                     std::span<const Tensor> unbatched, std::int64_t total) {
  std::vector<Tensor> wanted;
  wanted.reserve(item.outputs.size());
  for (const std::string& name : item.outputs) {
    const auto found = std::ranges::find(rows, name, &Tensor::name);
    if (found == rows.end()) {
      const Tensor& output = *std::ranges::find(unbatched, name, &Tensor::name);
      return Fail(ErrorCode::kInternal, "model '{}': output '{}' has shape {} for a batch of {}; it cannot be batched",
                  item.servable->name(), output.name, ShapeText(output.shape), total);
    }
    wanted.push_back(*found);
  }
  return wanted;
}

}  // namespace

bool CanShareRun(const WorkItem& a, const WorkItem& b) {
  // Without inputs nothing says how many elements the outputs have.
  if (a.inputs.empty()) return false;
  return std::ranges::equal(a.inputs, b.inputs, [](const Tensor& x, const Tensor& y) {
    return x.name == y.name && x.shape.size() == y.shape.size() &&
           std::equal(x.shape.begin() + 1, x.shape.end(), y.shape.begin() + 1);
  });
}

std::size_t ShareHash(const WorkItem& item) {
  std::size_t hash = item.inputs.size();
  const auto mix = [&hash](std::size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u; };
  for (const Tensor& input : item.inputs) {
    mix(std::hash<std::string_view>()(input.name));
    mix(input.shape.size());
    for (std::size_t d = 1; d < input.shape.size(); ++d) mix(static_cast<std::size_t>(input.shape[d]));
  }
  return hash;
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

std::vector<Result<std::vector<Tensor>>> SplitOutputs(std::span<const WorkItem> items, std::vector<Tensor> outputs) {
  std::vector<Result<std::vector<Tensor>>> split;
  split.reserve(items.size());
  if (items.size() == 1) {
    split.emplace_back(std::move(outputs));
    return split;
  }
  std::int64_t total = 0;
  for (const WorkItem& item : items) total += item.batch;
  const auto batched = [&](const Tensor& output) { return !output.shape.empty() && output.shape[0] == total; };
  const auto unbatched = std::ranges::stable_partition(outputs, batched);

  std::vector<Tensor> rows(outputs.begin(), unbatched.begin());
  for (const WorkItem& item : items) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = TakeRows(outputs[i], item.batch);
    split.push_back(WantedOf(item, rows, unbatched, total));
  }
  return split;
}

}  // namespace tandem
