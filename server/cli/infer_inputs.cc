#include "server/cli/infer_inputs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>

#include <json/reader.h>
#include <json/writer.h>

#include "api/base/half_float.h"
#include "api/wire/json_text.h"
#include "api/wire/npy.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/target.h"

namespace tandem::cli {
namespace {

Result<std::vector<TensorSpec>> ReadSpecs(const Json::Value& list) {
  std::vector<TensorSpec> specs;
  for (const Json::Value& item : list) {
    const auto type = ParseDataType(item["datatype"].asString());
    if (!type)
      return Fail(ErrorCode::kInternal, "the server names the unknown datatype '{}'", item["datatype"].asString());
    TensorSpec spec{.name = item["name"].asString(), .type = *type, .shape = {}};
    for (const Json::Value& dim : item["shape"]) spec.shape.push_back(dim.asInt64());
    specs.push_back(std::move(spec));
  }
  return specs;
}

Bytes Copy(std::string_view bytes) {
  AlignedBuffer buffer(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return Bytes::Own(std::move(buffer));
}

template <typename T>
void AppendValue(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

bool FitsFp32(const Json::Value& v) {
  return v.isNumeric() && std::abs(v.asDouble()) <= std::numeric_limits<float>::max();
}

std::string JsonText(const Json::Value& value) {
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "";
  builder["emitUTF8"] = true;
  return Json::writeString(builder, value);
}

// One element in the binary layout. False: the JSON value does not fit the type.
bool AppendJson(const Json::Value& v, DataType type, std::string& out) {
  const auto integer = [&]<typename T>(T) {
    if constexpr (std::is_signed_v<T>) {
      if (!v.isInt64() || !std::in_range<T>(v.asInt64())) return false;
      AppendValue(static_cast<T>(v.asInt64()), out);
    } else {
      if (!v.isUInt64() || !std::in_range<T>(v.asUInt64())) return false;
      AppendValue(static_cast<T>(v.asUInt64()), out);
    }
    return true;
  };
  switch (type) {
    case DataType::kBool:
      if (!v.isBool()) return false;
      AppendValue(static_cast<std::uint8_t>(v.asBool()), out);
      return true;
    case DataType::kUint8: return integer(std::uint8_t{});
    case DataType::kUint16: return integer(std::uint16_t{});
    case DataType::kUint32: return integer(std::uint32_t{});
    case DataType::kUint64: return integer(std::uint64_t{});
    case DataType::kInt8: return integer(std::int8_t{});
    case DataType::kInt16: return integer(std::int16_t{});
    case DataType::kInt32: return integer(std::int32_t{});
    case DataType::kInt64: return integer(std::int64_t{});
    case DataType::kFp16:
      // Beyond the largest FP16 by half a step or more.
      if (!v.isNumeric() || std::abs(v.asDouble()) >= 65520) return false;
      AppendValue(ToFp16(v.asFloat()), out);
      return true;
    case DataType::kBf16:
      if (!FitsFp32(v)) return false;
      AppendValue(ToBf16(v.asFloat()), out);
      return true;
    case DataType::kFp32:
      if (!FitsFp32(v)) return false;
      AppendValue(v.asFloat(), out);
      return true;
    case DataType::kFp64:
      if (!v.isNumeric()) return false;
      AppendValue(v.asDouble(), out);
      return true;
    case DataType::kBytes:
      if (!v.isString()) return false;
      AppendBytesElement(v.asString(), out);
      return true;
  }
  return false;
}

Shape NestedShape(const Json::Value& value) {
  Shape shape;
  for (const Json::Value* at = &value; at->isArray(); at = &(*at)[0]) {
    shape.push_back(at->size());
    if (at->empty()) break;
  }
  return shape;
}

// `shape` is what lists at this depth and below must be like.
Status AppendLeaves(const Json::Value& value, std::span<const std::int64_t> shape, const TensorSpec& spec,
                    const std::string& where, std::string& out) {
  if (shape.empty()) {
    if (!value.isArray() && AppendJson(value, spec.type, out)) return {};
    return Invalid("{}: the value {} does not fit {}", where, Excerpt(JsonText(value)), DataTypeName(spec.type));
  }
  if (!value.isArray() || value.size() != shape.front()) {
    return Invalid("{}: its lists are not all of the same length", where);
  }
  for (const Json::Value& element : value) TANDEM_TRY(AppendLeaves(element, shape.subspan(1), spec, where, out));
  return {};
}

// The shape for `count` values in one flat list: the first variable dimension takes what the others leave.
Result<Shape> ShapeOfFlatList(const TensorSpec& spec, std::int64_t count, const std::string& where) {
  Shape shape = spec.shape;
  std::int64_t* free = nullptr;
  for (std::int64_t& dim : shape) {
    if (dim >= 0) continue;
    if (free == nullptr) free = &dim;
    dim = 1;
  }
  TANDEM_ASSIGN(const std::int64_t each, ElementCount(shape));
  if (free != nullptr && each > 0 && count % each == 0) {
    *free = count / each;
    return shape;
  }
  if (count == each) return shape;
  return Invalid("{}: {} values do not fill {}", where, count, ShapeText(spec.shape));
}

Result<Tensor> FromJson(const InputChoice& choice, const TensorSpec& spec, const ShapeChoice* said) {
  Tensor tensor{.name = spec.name, .type = spec.type, .shape = NestedShape(choice.json), .data = {}};
  std::string bytes;
  TANDEM_TRY(AppendLeaves(choice.json, tensor.shape, spec, choice.where, bytes));
  TANDEM_ASSIGN(const std::int64_t count, ElementCount(tensor.shape));
  tensor.data = Copy(bytes);
  if (said != nullptr) {
    TANDEM_ASSIGN(const std::int64_t wanted, ElementCount(said->shape));
    if (wanted != count) {
      return Invalid("{} asks for {} values, {} gives {}", said->where, wanted, choice.where, count);
    }
    tensor.shape = said->shape;
  } else if (tensor.shape.size() <= 1 && tensor.shape.size() < spec.shape.size()) {
    TANDEM_ASSIGN(tensor.shape, ShapeOfFlatList(spec, count, choice.where));
  } else if (tensor.shape.size() < spec.shape.size()) {
    tensor.shape.insert(tensor.shape.begin(), spec.shape.size() - tensor.shape.size(), 1);
  }
  TANDEM_TRY(CheckTensorData(tensor));
  return tensor;
}

Result<InputChoice> ParseInputChoice(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Invalid("--input '{}' must be NAME=@FILE or NAME=JSON", Excerpt(text));
  }
  InputChoice choice;
  choice.name = text.substr(0, equals);
  choice.where = "--input " + choice.name;
  const std::string value = text.substr(equals + 1);
  if (value.starts_with('@')) {
    choice.file = value.substr(1);
    if (choice.file.empty()) return Invalid("--input {}: no file after @", choice.name);
    return choice;
  }
  Json::CharReaderBuilder builder;
  const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
  std::string errors;
  // Its own check first: the reader throws on text that is nested too deep.
  if (!CheckJson(value) || !reader->parse(value.data(), value.data() + value.size(), &choice.json, &errors)) {
    return Invalid("--input {}: '{}' is neither @FILE nor JSON", choice.name, Excerpt(value));
  }
  return choice;
}

Result<ShapeChoice> ParseShapeChoice(const std::string& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return Invalid("--shape '{}' must be NAME:D,D,…", Excerpt(text));
  ShapeChoice choice{.name = text.substr(0, colon), .shape = {}, .where = {}};
  choice.where = "--shape " + choice.name;
  for (const auto part : std::views::split(std::string_view(text).substr(colon + 1), ',')) {
    std::int64_t dim = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), dim);
    if (error != std::errc() || end != part.data() + part.size() || dim < 0) {
      return Invalid("--shape '{}' must be NAME:D,D,…", Excerpt(text));
    }
    choice.shape.push_back(dim);
  }
  if (choice.shape.empty()) return Invalid("--shape '{}' must be NAME:D,D,…", Excerpt(text));
  return choice;
}

template <typename Choice>
const Choice* Find(const std::vector<Choice>& choices, const std::string& name) {
  const auto found = std::ranges::find(choices, name, &Choice::name);
  return found == choices.end() ? nullptr : &*found;
}

// Every name that was said must be one of the model's.
template <typename Choice>
Status CheckNames(const std::string& where, const std::vector<Choice>& choices, const ModelSignature& signature) {
  for (const Choice& choice : choices) {
    if (signature.FindInput(choice.name) != nullptr) continue;
    std::string known;
    for (const TensorSpec& spec : signature.inputs) known += (known.empty() ? "" : ", ") + spec.name;
    return Invalid("{}: the model has no input '{}'; it has: {}", where, Excerpt(choice.name), known);
  }
  return {};
}

// A shape of one row, or of as many as asked for, as one of the batch.
Status PutBatch(const BatchChoice& batch, const TensorSpec& spec, Shape& shape) {
  if (batch.size == 1) return {};
  if (spec.shape.empty() || spec.shape.front() >= 0) {
    return Invalid("{} is {}, but input '{}' of shape {} has no batch dimension", batch.where, batch.size,
                   Excerpt(spec.name), ShapeText(spec.shape));
  }
  if (shape.empty() || (shape.front() != 1 && shape.front() != batch.size)) {
    return Invalid("{} is {}, but input '{}' has the shape {}", batch.where, batch.size, Excerpt(spec.name),
                   ShapeText(shape));
  }
  shape.front() = batch.size;
  return {};
}

Result<Tensor> RandomInput(const TensorSpec& spec, const ShapeChoice* said, std::uint64_t seed,
                           const BatchChoice& batch) {
  TensorSpec concrete = spec;
  concrete.optional = false;
  for (std::int64_t& dim : concrete.shape) dim = dim < 0 ? 1 : dim;
  if (said != nullptr) concrete.shape = said->shape;
  TANDEM_TRY(PutBatch(batch, spec, concrete.shape));
  TANDEM_ASSIGN(std::vector<Tensor> random,
                loadgen::RandomInputs({.inputs = {concrete}, .outputs = {}}, {.seed = seed}));
  return std::move(random.front());
}

// A tensor of one row becomes one of as many as the batch has.
Result<Tensor> Repeated(Tensor tensor, const TensorSpec& spec, const BatchChoice& batch) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  const bool one_row = !tensor.shape.empty() && tensor.shape.front() == 1;
  TANDEM_TRY(PutBatch(batch, spec, tensor.shape));
  if (batch.size == 1 || !one_row) return tensor;
  const std::size_t row = tensor.data.size();
  if (row > kMaxBytes / batch.size) {
    return Invalid("{} is {}: input '{}' would be larger than {} bytes", batch.where, batch.size, Excerpt(spec.name),
                   kMaxBytes);
  }
  AlignedBuffer rows(row * batch.size);
  for (std::size_t i = 0; i < batch.size && row > 0; ++i) {
    std::memcpy(rows.data() + i * row, tensor.data.view.data(), row);
  }
  tensor.data = Bytes::Own(std::move(rows));
  return tensor;
}

}  // namespace

Result<ModelSignature> SignatureFromMetadata(const Json::Value& metadata) {
  ModelSignature signature;
  TANDEM_ASSIGN(signature.inputs, ReadSpecs(metadata["inputs"]));
  TANDEM_ASSIGN(signature.outputs, ReadSpecs(metadata["outputs"]));
  return signature;
}

void MarkOptionalInputs(const Json::Value& config, ModelSignature& signature) {
  if (!config.isObject() || !config["input"].isArray()) return;
  for (const Json::Value& input : config["input"]) {
    if (!input.isObject() || !input["optional"].isBool() || !input["optional"].asBool()) continue;
    for (TensorSpec& spec : signature.inputs) spec.optional = spec.optional || spec.name == input["name"].asString();
  }
}

Result<InferChoices> ParseChoices(const std::vector<std::string>& inputs, const std::vector<std::string>& shapes) {
  InferChoices choices;
  for (const std::string& text : inputs) {
    TANDEM_ASSIGN(InputChoice choice, ParseInputChoice(text));
    if (Find(choices.inputs, choice.name) != nullptr) return Invalid("--input {} is given twice", choice.name);
    choices.inputs.push_back(std::move(choice));
  }
  for (const std::string& text : shapes) {
    TANDEM_ASSIGN(ShapeChoice choice, ParseShapeChoice(text));
    if (Find(choices.shapes, choice.name) != nullptr) return Invalid("--shape {} is given twice", choice.name);
    const InputChoice* input = Find(choices.inputs, choice.name);
    if (input != nullptr && !input->file.empty()) {
      return Invalid("--shape {}: the file '{}' has a shape of its own", choice.name, input->file);
    }
    choices.shapes.push_back(std::move(choice));
  }
  return choices;
}

Status ReadFiles(InferChoices& choices) {
  for (InputChoice& choice : choices.inputs) {
    if (choice.file.empty()) continue;
    auto tensor = ReadNpy(choice.file);
    if (!tensor) return Fail(ErrorCode::kNotFound, "{}: {}", choice.where, tensor.error().message);
    choice.read = *std::move(tensor);
    choice.read->name = choice.name;
  }
  return {};
}

Result<std::vector<Tensor>> MakeInputs(const ModelSignature& signature, const InferChoices& choices, std::uint32_t seed,
                                       const BatchChoice& batch) {
  TANDEM_TRY(CheckNames(choices.inputs_where, choices.inputs, signature));
  TANDEM_TRY(CheckNames(choices.shapes_where, choices.shapes, signature));
  std::vector<Tensor> inputs;
  std::uint64_t index = 0;
  for (const TensorSpec& spec : signature.inputs) {
    const std::uint64_t own_seed = (std::uint64_t{seed} << 32) + index++;
    const ShapeChoice* shape = Find(choices.shapes, spec.name);
    const InputChoice* choice = Find(choices.inputs, spec.name);
    if (choice == nullptr || choice->seed) {
      if (choice == nullptr && spec.optional && shape == nullptr) continue;
      const std::uint64_t random_seed = choice == nullptr ? own_seed : *choice->seed;
      TANDEM_ASSIGN(inputs.emplace_back(), RandomInput(spec, shape, random_seed, batch));
    } else if (choice->read) {
      TANDEM_ASSIGN(inputs.emplace_back(), Repeated(*choice->read, spec, batch));
    } else {
      TANDEM_ASSIGN(Tensor value, FromJson(*choice, spec, shape));
      TANDEM_ASSIGN(inputs.emplace_back(), Repeated(std::move(value), spec, batch));
    }
  }
  return inputs;
}

Result<DescribedModel> DescribeModel(ApiClient& client, const std::string& model, const std::string& version) {
  DescribedModel described{.path = "/v2/models/" + loadgen::PathSegment(model), .signature = {}};
  if (!version.empty()) described.path += "/versions/" + loadgen::PathSegment(version);
  TANDEM_ASSIGN(const Json::Value metadata, client.Get(described.path));
  TANDEM_ASSIGN(described.signature, SignatureFromMetadata(metadata));
  // A server without that extension has no optional inputs to tell of.
  if (const auto config = client.Get(described.path + "/config")) MarkOptionalInputs(*config, described.signature);
  return described;
}

}  // namespace tandem::cli
