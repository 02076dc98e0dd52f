#include "server/repository/warmup.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "api/wire/model_config_text.h"
#include "server/repository/model_name.h"

namespace tandem::repository {
namespace {

using WarmupInput = inference::ModelWarmup::Input;

constexpr std::int64_t kMaxSampleBytes = std::int64_t{1} << 30;
constexpr std::uint32_t kMaxRuns = 10'000;
// One to do what is lazy, the others to learn what a run takes, as far as that does not keep the model from being
// ready.
constexpr std::uint32_t kZeroRuns = 4;
constexpr std::chrono::milliseconds kTimeForZeros{300};

// Bytes of a tensor whose BYTES elements, if any, are empty; or of the lengths alone.
Result<std::int64_t> PlainByteSize(DataType type, const Shape& shape) {
  return ByteSize(type == DataType::kBytes ? DataType::kUint32 : type, shape);
}

Bytes Zeros(std::int64_t size) {
  AlignedBuffer buffer(static_cast<std::size_t>(size));
  if (size > 0) std::memset(buffer.data(), 0, buffer.size());
  return Bytes::Own(std::move(buffer));
}

template <typename T, typename Make>
void Fill(AlignedBuffer& buffer, Make make) {
  for (std::size_t at = 0; at + sizeof(T) <= buffer.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(buffer.data() + at, &value, sizeof(T));
  }
}

// Numbers that most graphs accept: integers of 0 or 1, since they may be an index; others from 0.5 to 1. BYTES elements
// stay empty. The seed is fixed: two loads of a model do the same.
Bytes RandomNumbers(DataType type, std::int64_t size) {
  std::mt19937 random(7);
  AlignedBuffer buffer(static_cast<std::size_t>(size));
  const auto bit = [&] { return random() & 1U; };
  const auto fraction = [&] { return 0.5 + 0.5 * static_cast<double>(random()) / 4294967296.0; };
  switch (type) {
    case DataType::kFp64: Fill<double>(buffer, fraction); break;
    case DataType::kFp32: Fill<float>(buffer, fraction); break;
    case DataType::kFp16: Fill<std::uint16_t>(buffer, [&] { return 0x3800U | (random() & 0x3FFU); }); break;
    case DataType::kBf16: Fill<std::uint16_t>(buffer, [&] { return 0x3F00U | (random() & 0x7FU); }); break;
    case DataType::kUint16:
    case DataType::kInt16: Fill<std::uint16_t>(buffer, bit); break;
    case DataType::kUint32:
    case DataType::kInt32: Fill<std::uint32_t>(buffer, bit); break;
    case DataType::kUint64:
    case DataType::kInt64: Fill<std::uint64_t>(buffer, bit); break;
    case DataType::kBool:
    case DataType::kUint8:
    case DataType::kInt8: Fill<std::uint8_t>(buffer, bit); break;
    case DataType::kBytes: return Zeros(size);
  }
  return Bytes::Own(std::move(buffer));
}

Result<Bytes> ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0 || size > kMaxSampleBytes) return Invalid("file '{}' cannot be read or is too large", PathText(path));
  AlignedBuffer buffer(static_cast<std::size_t>(size));
  file.seekg(0);
  if (size > 0 && !file.read(reinterpret_cast<char*>(buffer.data()), size)) {
    return Invalid("file '{}' cannot be read", PathText(path));
  }
  return Bytes::Own(std::move(buffer));
}

// `given`, or the signature's shape with 1 for what is variable.
Result<Shape> SampleShape(const TensorSpec& spec, const WarmupInput& given, std::int64_t batch) {
  Shape shape(given.dims().begin(), given.dims().end());
  if (batch > 0) shape.insert(shape.begin(), batch);
  const bool from_signature = given.dims_size() == 0 && shape.size() != spec.shape.size();
  if (from_signature) {
    shape = spec.shape;
    std::ranges::replace(shape, -1, 1);
    if (batch > 0) shape[0] = batch;
  }
  bool fits = shape.size() == spec.shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] >= 0 && (spec.shape[i] == -1 || spec.shape[i] == shape[i]);
  }
  if (!fits) return Invalid("dims give shape {}, the model takes {}", ShapeText(shape), ShapeText(spec.shape));
  return shape;
}

Result<Tensor> BuildInput(const ModelFolder& model, const TensorSpec& spec, const WarmupInput& given,
                          std::int64_t batch) {
  if (given.data_type() != inference::TYPE_INVALID && given.data_type() != ToConfigDataType(spec.type)) {
    return Invalid("data_type is {}, the model takes {}", inference::DataType_Name(given.data_type()),
                   DataTypeName(spec.type));
  }
  Tensor tensor{.name = spec.name, .type = spec.type};
  TANDEM_ASSIGN(tensor.shape, SampleShape(spec, given, batch));
  TANDEM_ASSIGN(const std::int64_t size, PlainByteSize(spec.type, tensor.shape));
  if (size > kMaxSampleBytes) return Invalid("shape {} needs {} bytes", ShapeText(tensor.shape), size);
  switch (given.input_data_type_case()) {
    case WarmupInput::kInputDataFile: {
      TANDEM_ASSIGN(const auto path,
                    ConfinedFile(model, model.folder / "warmup", given.input_data_file(), "input_data_file"));
      TANDEM_ASSIGN(tensor.data, ReadFile(path));
      break;
    }
    case WarmupInput::kRandomData: tensor.data = RandomNumbers(spec.type, size); break;
    case WarmupInput::kZeroData: tensor.data = Zeros(size); break;
    case WarmupInput::INPUT_DATA_TYPE_NOT_SET: return Invalid("one of zero_data, random_data, input_data_file is due");
  }
  TANDEM_TRY(CheckTensorData(tensor));
  return tensor;
}

Result<WarmupSample> BuildSample(const ModelFolder& model, const ModelSettings& settings,
                                 const inference::ModelWarmup& given) {
  const std::int64_t max_batch = settings.batching.max_batch_size;
  if (given.batch_size() > std::max<std::int64_t>(max_batch, 1)) {
    return Invalid("batch_size is {}, max_batch_size is {}", given.batch_size(), max_batch);
  }
  if (given.count() > kMaxRuns) return Invalid("count is {}; at most {} is allowed", given.count(), kMaxRuns);
  const std::int64_t batch = max_batch > 0 ? std::max<std::int64_t>(given.batch_size(), 1) : 0;
  WarmupSample sample{.name = given.name(), .runs = std::max<std::uint32_t>(given.count(), 1)};
  for (const auto& [name, input] : given.inputs()) {
    if (settings.signature.FindInput(name) == nullptr) return Invalid("the model has no input '{}'", Quotable(name));
  }
  for (const TensorSpec& spec : settings.signature.inputs) {
    const auto found = given.inputs().find(spec.name);
    if (found == given.inputs().end()) {
      if (spec.optional) continue;
      return Invalid("input '{}' is missing", Quotable(spec.name));
    }
    auto tensor = BuildInput(model, spec, found->second, batch);
    if (!tensor) return Fail(tensor.error().code, "input '{}': {}", Quotable(spec.name), tensor.error().message);
    sample.inputs.push_back(std::move(*tensor));
  }
  return sample;
}

}  // namespace

Result<std::vector<WarmupSample>> BuildWarmup(const ModelFolder& model, const ModelSettings& settings) {
  std::vector<WarmupSample> samples;
  for (const inference::ModelWarmup& given : settings.config.model_warmup()) {
    auto sample = BuildSample(model, settings, given);
    if (!sample) {
      return Fail(sample.error().code, "model_warmup '{}': {}", Quotable(given.name()), sample.error().message);
    }
    samples.push_back(std::move(*sample));
  }
  return samples;
}

Result<Tensor> ZeroTensor(const TensorSpec& spec, Shape shape) {
  TANDEM_ASSIGN(const std::int64_t size, PlainByteSize(spec.type, shape));
  if (size > kMostZeros) {
    return Fail(ErrorCode::kTooLarge, "input '{}' of shape {} needs {} bytes; at most {} are made", Quotable(spec.name),
                ShapeText(shape), size, kMostZeros);
  }
  return Tensor{.name = spec.name, .type = spec.type, .shape = std::move(shape), .data = Zeros(size)};
}

std::optional<WarmupSample> DefaultWarmup(const ModelSettings& settings) {
  WarmupSample sample{.name = "zeros", .runs = kZeroRuns, .time_for_repeats = kTimeForZeros};
  std::int64_t total = 0;
  for (const TensorSpec& spec : settings.signature.inputs) {
    if (spec.optional) continue;
    Shape shape = spec.shape;
    std::ranges::replace(shape, -1, 1);
    auto tensor = ZeroTensor(spec, std::move(shape));
    if (!tensor) return std::nullopt;
    total += static_cast<std::int64_t>(tensor->data.size());
    if (total > kMostZeros) return std::nullopt;
    sample.inputs.push_back(*std::move(tensor));
  }
  return sample;
}

Status RunWarmup(InferenceSession& session, const ModelSettings& settings, const WarmupSample& sample,
                 const Clock& clock, CancelToken& cancel, std::vector<WarmRun>& warm) {
  std::vector<std::string> outputs;
  for (const TensorSpec& spec : settings.signature.outputs) outputs.push_back(spec.name);
  const bool batched = settings.batching.max_batch_size > 0 && !sample.inputs.empty();
  const std::int64_t elements = batched ? sample.inputs.front().shape.front() : 1;
  const MonotonicTime begun = clock.Now();
  for (std::uint32_t run = 0; run < sample.runs; ++run) {
    const MonotonicTime start = clock.Now();
    if (run > 0 && start - begun > sample.time_for_repeats) break;
    if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "model_warmup '{}' was ended", Quotable(sample.name));
    if (const auto result = session.Run(sample.inputs, outputs, cancel); !result) {
      return Fail(result.error().code, "model_warmup '{}' failed: {}", Quotable(sample.name), result.error().message);
    }
    if (run > 0) warm.push_back({.elements = elements, .took = clock.Now() - start});
  }
  return {};
}

}  // namespace tandem::repository
