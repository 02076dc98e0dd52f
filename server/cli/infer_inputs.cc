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

#include "api/wire/json_text.h"
#include "api/wire/npy.h"
#include "loadgen/infer_request_bytes.h"
#include "loadgen/target.h"
#include "server/cli/tensor_text.h"

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
                    std::string& out) {
  if (shape.empty()) {
    if (!value.isArray() && AppendJson(value, spec.type, out)) return {};
    return Invalid("--input {}: the value {} does not fit {}", spec.name, Excerpt(JsonText(value)),
                   DataTypeName(spec.type));
  }
  if (!value.isArray() || value.size() != shape.front()) {
    return Invalid("--input {}: its lists are not all of the same length", spec.name);
  }
  for (const Json::Value& element : value) TANDEM_TRY(AppendLeaves(element, shape.subspan(1), spec, out));
  return {};
}

// The shape for `count` values in one flat list: the first variable dimension takes what the others leave.
Result<Shape> ShapeOfFlatList(const TensorSpec& spec, std::int64_t count) {
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
  return Invalid("--input {}: {} values do not fill {}", spec.name, count, ShapeText(spec.shape));
}

Result<Tensor> FromJson(const InputChoice& choice, const TensorSpec& spec, const ShapeChoice* said) {
  Tensor tensor{.name = spec.name, .type = spec.type, .shape = NestedShape(choice.json), .data = {}};
  std::string bytes;
  TANDEM_TRY(AppendLeaves(choice.json, tensor.shape, spec, bytes));
  TANDEM_ASSIGN(const std::int64_t count, ElementCount(tensor.shape));
  tensor.data = Copy(bytes);
  if (said != nullptr) {
    TANDEM_ASSIGN(const std::int64_t wanted, ElementCount(said->shape));
    if (wanted != count) {
      return Invalid("--shape {} asks for {} values, --input gives {}", spec.name, wanted, count);
    }
    tensor.shape = said->shape;
  } else if (tensor.shape.size() <= 1 && tensor.shape.size() < spec.shape.size()) {
    TANDEM_ASSIGN(tensor.shape, ShapeOfFlatList(spec, count));
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
  InputChoice choice{.name = text.substr(0, equals), .file = {}, .json = {}, .read = {}};
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
  ShapeChoice choice{.name = text.substr(0, colon), .shape = {}};
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

// Every name of the command line must be one of the model's.
template <typename Choice>
Status CheckNames(const char* flag, const std::vector<Choice>& choices, const ModelSignature& signature) {
  for (const Choice& choice : choices) {
    if (signature.FindInput(choice.name) != nullptr) continue;
    std::string known;
    for (const TensorSpec& spec : signature.inputs) known += (known.empty() ? "" : ", ") + spec.name;
    return Invalid("{}: the model has no input '{}'; it has: {}", flag, Excerpt(choice.name), known);
  }
  return {};
}

Result<Tensor> RandomInput(const TensorSpec& spec, const ShapeChoice* said, std::uint64_t seed) {
  TensorSpec concrete = spec;
  concrete.optional = false;
  for (std::int64_t& dim : concrete.shape) dim = dim < 0 ? 1 : dim;
  if (said != nullptr) concrete.shape = said->shape;
  TANDEM_ASSIGN(std::vector<Tensor> random,
                loadgen::RandomInputs({.inputs = {concrete}, .outputs = {}}, {.seed = seed}));
  return std::move(random.front());
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
    if (!tensor) return Fail(ErrorCode::kNotFound, "--input {}: {}", choice.name, tensor.error().message);
    choice.read = *std::move(tensor);
    choice.read->name = choice.name;
  }
  return {};
}

Result<std::vector<Tensor>> MakeInputs(const ModelSignature& signature, const InferChoices& choices,
                                       std::uint32_t seed) {
  TANDEM_TRY(CheckNames("--input", choices.inputs, signature));
  TANDEM_TRY(CheckNames("--shape", choices.shapes, signature));
  std::vector<Tensor> inputs;
  std::uint64_t index = 0;
  for (const TensorSpec& spec : signature.inputs) {
    const std::uint64_t own_seed = (std::uint64_t{seed} << 32) + index++;
    const ShapeChoice* shape = Find(choices.shapes, spec.name);
    if (const InputChoice* choice = Find(choices.inputs, spec.name); choice == nullptr) {
      if (spec.optional && shape == nullptr) continue;
      TANDEM_ASSIGN(inputs.emplace_back(), RandomInput(spec, shape, own_seed));
    } else if (choice->read) {
      inputs.push_back(*choice->read);
    } else {
      TANDEM_ASSIGN(inputs.emplace_back(), FromJson(*choice, spec, shape));
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
