#include "server/cli/infer_inputs.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <ranges>
#include <utility>

#include <json/reader.h>

#include "api/wire/npy.h"
#include "loadgen/infer_request_bytes.h"

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
    case DataType::kFp32:
      if (!v.isNumeric()) return false;
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
    case DataType::kFp16:
    case DataType::kBf16: return false;
  }
  return false;
}

Status AppendLeaves(const Json::Value& value, const TensorSpec& spec, std::string& out) {
  if (!value.isArray()) {
    if (AppendJson(value, spec.type, out)) return {};
    return Invalid("--input {}: a value does not fit {}", spec.name, DataTypeName(spec.type));
  }
  for (const Json::Value& element : value) TANDEM_TRY(AppendLeaves(element, spec, out));
  return {};
}

Shape NestedShape(const Json::Value& value) {
  Shape shape;
  for (const Json::Value* at = &value; at->isArray(); at = &(*at)[0]) {
    shape.push_back(at->size());
    if (at->empty()) break;
  }
  return shape;
}

Result<Tensor> FromJson(const InputChoice& choice, const TensorSpec& spec) {
  Json::CharReaderBuilder builder;
  const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
  Json::Value value;
  std::string errors;
  if (!reader->parse(choice.value.data(), choice.value.data() + choice.value.size(), &value, &errors)) {
    return Invalid("--input {}: '{}' is neither @FILE nor JSON", choice.name, choice.value.substr(0, 100));
  }
  std::string bytes;
  TANDEM_TRY(AppendLeaves(value, spec, bytes));
  Tensor tensor{.name = spec.name, .type = spec.type, .shape = NestedShape(value), .data = Copy(bytes)};
  // A flat list is enough where the other dimensions are known.
  if (tensor.shape.size() < spec.shape.size()) {
    tensor.shape.insert(tensor.shape.begin(), spec.shape.size() - tensor.shape.size(), 1);
  }
  TANDEM_TRY(CheckTensorData(tensor));
  return tensor;
}

}  // namespace

Result<ModelSignature> SignatureFromMetadata(const Json::Value& metadata) {
  ModelSignature signature;
  TANDEM_ASSIGN(signature.inputs, ReadSpecs(metadata["inputs"]));
  TANDEM_ASSIGN(signature.outputs, ReadSpecs(metadata["outputs"]));
  return signature;
}

Result<InputChoice> ParseInputChoice(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return Invalid("--input '{}' must be NAME=@FILE or NAME=JSON", text);
  return InputChoice{text.substr(0, equals), text.substr(equals + 1)};
}

Result<ShapeChoice> ParseShapeChoice(const std::string& text) {
  const auto colon = text.rfind(':');
  ShapeChoice choice{.name = text.substr(0, colon), .shape = {}};
  if (colon != std::string::npos) {
    for (const auto part : std::views::split(std::string_view(text).substr(colon + 1), ',')) {
      std::int64_t dim = -1;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), dim);
      if (error != std::errc() || end != part.data() + part.size() || dim < 0) {
        return Invalid("--shape '{}' must be NAME:D,D,…", text);
      }
      choice.shape.push_back(dim);
    }
  }
  if (choice.shape.empty()) return Invalid("--shape '{}' must be NAME:D,D,…", text);
  return choice;
}

Result<Tensor> MakeInput(const TensorSpec& spec, const std::vector<InputChoice>& choices,
                         const std::vector<ShapeChoice>& shapes, unsigned seed) {
  if (const auto choice = std::ranges::find(choices, spec.name, &InputChoice::name); choice != choices.end()) {
    if (!choice->value.starts_with('@')) return FromJson(*choice, spec);
    TANDEM_ASSIGN(Tensor tensor, ReadNpy(choice->value.substr(1)));
    tensor.name = spec.name;
    return tensor;
  }
  Shape shape = spec.shape;
  for (std::int64_t& dim : shape) dim = dim < 0 ? 1 : dim;
  if (const auto said = std::ranges::find(shapes, spec.name, &ShapeChoice::name); said != shapes.end()) {
    shape = said->shape;
  }
  TensorSpec concrete = spec;
  concrete.shape = std::move(shape);
  TANDEM_ASSIGN(std::vector<Tensor> random,
                loadgen::RandomInputs({.inputs = {concrete}, .outputs = {}}, {.seed = seed}));
  return std::move(random.front());
}

}  // namespace tandem::cli
