#include "runtimes/onnx/run_slot.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "runtimes/onnx/session_signature.h"

namespace tandem {
namespace {

// ONNX Runtime wants an address even for a tensor without elements.
alignas(kTensorAlignment) std::byte no_elements[kTensorAlignment];

// A result kept in ONNX Runtime's memory stands in the way in its lane; small ones are copied.
constexpr std::size_t kMaxCopiedBytes = 16 << 10;

// Marks both ends of a buffer before a run. It varies by address, so that no client can send a value equal to it.
std::uint64_t Mark(const void* address) {
  return (std::bit_cast<std::uintptr_t>(address) ^ 0x9E3779B97F4A7C15ULL) * 0xD1342543DE82EF95ULL;
}

void WriteMarks(AlignedBuffer& buffer) {
  const std::uint64_t mark = Mark(buffer.data());
  std::memcpy(buffer.data(), &mark, sizeof(mark));
  std::memcpy(buffer.data() + buffer.size() - sizeof(mark), &mark, sizeof(mark));
}

bool HasMarks(const AlignedBuffer& buffer) {
  const std::uint64_t mark = Mark(buffer.data());
  return std::memcmp(buffer.data(), &mark, sizeof(mark)) == 0 &&
         std::memcmp(buffer.data() + buffer.size() - sizeof(mark), &mark, sizeof(mark)) == 0;
}

}  // namespace

RunSlot::RunSlot(const OrtApi& api, const OrtMemoryInfo* cpu, OrtPtr<OrtRunOptions> options,
                 std::shared_ptr<const void> memory)
    : api_(api), cpu_(cpu), options_(std::move(options)), memory_(std::move(memory)) {}

const void* RunSlot::UsableData(const Tensor& tensor) {
  const std::span<const std::byte> view = tensor.data.view;
  if (view.empty()) return no_elements;
  // A C++ bool that is neither 0 nor 1 is undefined; clients do send such bytes.
  const bool odd_bool =
      tensor.type == DataType::kBool && std::ranges::any_of(view, [](std::byte b) { return b > std::byte{1}; });
  const bool aligned = std::bit_cast<std::uintptr_t>(view.data()) % DataTypeSize(tensor.type) == 0;
  if (aligned && !odd_bool) return view.data();
  AlignedBuffer& copy = copies_.emplace_back(view.size());
  if (odd_bool) {
    std::ranges::transform(view, copy.data(), [](std::byte b) { return std::byte{b != std::byte{0}}; });
  } else {
    std::memcpy(copy.data(), view.data(), view.size());
  }
  return copy.data();
}

Result<OrtValue*> RunSlot::BindBytes(const Tensor& tensor, const void* data, std::size_t size) const {
  OrtValue* value = nullptr;
  // The C API has no const tensor; ONNX Runtime does not write to inputs.
  OrtStatus* const status =
      api_.CreateTensorWithDataAsOrtValue(cpu_, const_cast<void*>(data), size, tensor.shape.data(), tensor.shape.size(),
                                          ElementTypeOf(tensor.type), &value);
  if (const auto failure = TakeFailure(api_, status)) return Invalid("tensor '{}': {}", tensor.name, failure->message);
  return value;
}

Result<OrtValue*> RunSlot::BindStrings(const Tensor& tensor) const {
  TANDEM_TRY(CheckTensorData(tensor));  // Its elements are about to be indexed by the shape.
  OrtAllocator* allocator = nullptr;    // Owned by the library.
  TANDEM_TRY(CheckOrt(api_, api_.GetAllocatorWithDefaultOptions(&allocator), "string tensor"));
  OrtValue* raw = nullptr;
  TANDEM_TRY(CheckOrt(api_,
                      api_.CreateTensorAsOrtValue(allocator, tensor.shape.data(), tensor.shape.size(),
                                                  ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &raw),
                      "string tensor"));
  OrtPtr<OrtValue> value(raw, {api_.ReleaseValue});
  std::size_t index = 0;
  for (const std::string_view element : BytesElements(tensor.data.view)) {
    char* target = nullptr;
    TANDEM_TRY(CheckOrt(api_, api_.GetResizedStringTensorElementBuffer(raw, index++, element.size(), &target),
                        "string tensor"));
    std::ranges::copy(element, target);
  }
  return value.release();
}

Status RunSlot::AddInput(const char* name, const Tensor& tensor) {
  // Room first: nothing may throw between making a value and keeping it.
  input_names_.reserve(input_names_.size() + 1);
  input_values_.reserve(input_values_.size() + 1);
  input_bytes_.push_back(tensor.data.view);
  auto value =
      tensor.type == DataType::kBytes ? BindStrings(tensor) : BindBytes(tensor, UsableData(tensor), tensor.data.size());
  if (!value) return std::unexpected(std::move(value).error());
  input_names_.push_back(name);
  input_values_.push_back(*value);
  return {};
}

void RunSlot::AddOutput(const char* name) {
  output_names_.push_back(name);
  planned_.emplace_back();
  output_values_.push_back(nullptr);
}

Status RunSlot::AddOutput(const char* name, DataType type, Shape shape) {
  TANDEM_ASSIGN(const std::int64_t bytes, ByteSize(type, shape));
  AddOutput(name);
  Planned& planned = planned_.back();
  planned.buffer = AlignedBuffer(static_cast<std::size_t>(bytes));
  planned.shape = std::move(shape);
  WriteMarks(planned.buffer);
  return CheckOrt(
      api_,
      api_.CreateTensorWithDataAsOrtValue(cpu_, planned.buffer.data(), planned.buffer.size(), planned.shape.data(),
                                          planned.shape.size(), ElementTypeOf(type), &output_values_.back()),
      "output tensor");
}

void RunSlot::ClearOutputs() {
  for (OrtValue* value : output_values_) api_.ReleaseValue(value);
  output_values_.clear();
  output_names_.clear();
  planned_.clear();
}

void RunSlot::Clear() {
  ClearOutputs();
  for (OrtValue* value : input_values_) api_.ReleaseValue(value);
  input_values_.clear();
  input_names_.clear();
  input_bytes_.clear();
  copies_.clear();
}

std::optional<OrtFailure> RunSlot::Run(OrtSession* session) {
  return TakeFailure(api_,
                     api_.Run(session, options_.get(), input_names_.data(), input_values_.data(), input_values_.size(),
                              output_names_.data(), output_names_.size(), output_values_.data()));
}

std::optional<Shape> RunSlot::PlannedShape(std::size_t output) const {
  if (planned_[output].buffer.size() == 0) return std::nullopt;
  return planned_[output].shape;
}

bool RunSlot::Untouched(std::size_t output) const {
  const AlignedBuffer& buffer = planned_[output].buffer;
  return buffer.size() > 0 && HasMarks(buffer);
}

Result<Shape> RunSlot::OutputShape(std::size_t output) const {
  if (planned_[output].buffer.size() > 0) return planned_[output].shape;
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  TANDEM_TRY(CheckOrt(api_, api_.GetTensorTypeAndShape(output_values_[output], &raw), "output tensor"));
  const OrtPtr<OrtTensorTypeAndShapeInfo> info(raw, {api_.ReleaseTensorTypeAndShapeInfo});
  std::size_t rank = 0;
  TANDEM_TRY(CheckOrt(api_, api_.GetDimensionsCount(raw, &rank), "output tensor"));
  Shape shape(rank);
  TANDEM_TRY(CheckOrt(api_, api_.GetDimensions(raw, shape.data(), rank), "output tensor"));
  return shape;
}

Result<Bytes> RunSlot::StringBytes(const OrtValue* value, std::size_t count) const {
  std::size_t total = 0;
  TANDEM_TRY(CheckOrt(api_, api_.GetStringTensorDataLength(value, &total), "string output"));
  std::string text(total, '\0');
  std::vector<std::size_t> offsets(count);
  if (count > 0) {
    TANDEM_TRY(
        CheckOrt(api_, api_.GetStringTensorContent(value, text.data(), total, offsets.data(), count), "string output"));
  }
  AlignedBuffer buffer(total + count * sizeof(std::uint32_t));
  std::byte* out = buffer.data();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = i + 1 < count ? offsets[i + 1] : total;
    const auto length = static_cast<std::uint32_t>(end - offsets[i]);
    std::memcpy(out, &length, sizeof(length));
    std::memcpy(out + sizeof(length), text.data() + offsets[i], length);
    out += sizeof(length) + length;
  }
  return Bytes::Own(std::move(buffer));
}

bool RunSlot::PointsIntoInput(const void* data) const {
  const auto holds = [data](std::span<const std::byte> input) {
    return data >= input.data() && data < input.data() + input.size();
  };
  return std::ranges::any_of(input_bytes_, holds) ||
         std::ranges::any_of(copies_, [&](const AlignedBuffer& copy) { return holds(copy.span()); });
}

Result<Tensor> RunSlot::TakeOutput(std::size_t output, const std::string& name, DataType type) {
  Tensor tensor{.name = name, .type = type};
  TANDEM_ASSIGN(tensor.shape, OutputShape(output));
  if (planned_[output].buffer.size() > 0) {
    tensor.data = Bytes::Own(std::move(planned_[output].buffer));
    return tensor;
  }
  TANDEM_ASSIGN(const std::int64_t count, ElementCount(tensor.shape));
  if (type == DataType::kBytes) {
    TANDEM_ASSIGN(tensor.data, StringBytes(output_values_[output], static_cast<std::size_t>(count)));
    return tensor;
  }
  void* data = nullptr;
  TANDEM_TRY(CheckOrt(api_, api_.GetTensorMutableData(output_values_[output], &data), "output tensor"));
  const std::span<const std::byte> view(static_cast<const std::byte*>(data),
                                        static_cast<std::size_t>(count) * DataTypeSize(type));
  // An input that the graph passes straight through is still the caller's memory, or our copy of it.
  if (view.size() <= kMaxCopiedBytes || PointsIntoInput(data)) {
    AlignedBuffer copy(view.size());
    std::ranges::copy(view, copy.data());
    tensor.data = Bytes::Own(std::move(copy));
    return tensor;
  }
  OrtValue* const value = std::exchange(output_values_[output], nullptr);
  tensor.data = {view, std::shared_ptr<const void>(
                           value, [release = api_.ReleaseValue, memory = memory_](OrtValue* v) { release(v); })};
  return tensor;
}

}  // namespace tandem
