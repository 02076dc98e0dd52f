#include "loadgen/infer_request_bytes.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/socket_address.h"
#include "loadgen/target.h"

namespace tandem::loadgen {
namespace {

template <typename T>
T Element(std::span<const std::byte> data, std::size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void AppendNumber(T value, std::string& out) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return void(out += "NaN");
    if (std::isinf(value)) return void(out += value < 0 ? "-Infinity" : "Infinity");
  }
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  out.append(text.data(), end);
}

template <typename T>
void AppendNumbers(std::span<const std::byte> data, std::string& out) {
  const std::size_t count = data.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    AppendNumber(Element<T>(data, i), out);
  }
}

Status AppendWords(const Tensor& tensor, std::string& out) {
  bool first = true;
  for (const std::string_view element : BytesElements(tensor.data.view)) {
    if (!IsValidUtf8(element)) return Invalid("input '{}' has no JSON form: it is not UTF-8", Excerpt(tensor.name));
    if (!first) out += ',';
    first = false;
    AppendJsonString(element, out);
  }
  return {};
}

Status AppendData(const Tensor& tensor, std::string& out) {
  const auto data = tensor.data.view;
  switch (tensor.type) {
    case DataType::kBool:
      for (std::size_t i = 0; i < data.size(); ++i) {
        if (i > 0) out += ',';
        out += data[i] != std::byte{0} ? "true" : "false";
      }
      return {};
    case DataType::kUint8: AppendNumbers<std::uint8_t>(data, out); return {};
    case DataType::kUint16: AppendNumbers<std::uint16_t>(data, out); return {};
    case DataType::kUint32: AppendNumbers<std::uint32_t>(data, out); return {};
    case DataType::kUint64: AppendNumbers<std::uint64_t>(data, out); return {};
    case DataType::kInt8: AppendNumbers<std::int8_t>(data, out); return {};
    case DataType::kInt16: AppendNumbers<std::int16_t>(data, out); return {};
    case DataType::kInt32: AppendNumbers<std::int32_t>(data, out); return {};
    case DataType::kInt64: AppendNumbers<std::int64_t>(data, out); return {};
    case DataType::kFp32: AppendNumbers<float>(data, out); return {};
    case DataType::kFp64: AppendNumbers<double>(data, out); return {};
    case DataType::kBytes: return AppendWords(tensor, out);
    case DataType::kFp16:
    case DataType::kBf16: break;
  }
  return Invalid("input '{}' is {}, which has no JSON form", Excerpt(tensor.name), DataTypeName(tensor.type));
}

Status AppendInput(const Tensor& tensor, InferForm form, std::string& out) {
  TANDEM_TRY(CheckTensorData(tensor));
  out += "{\"name\":";
  AppendJsonString(tensor.name, out);
  out += Format(",\"shape\":{},\"datatype\":\"{}\",", ShapeText(tensor.shape), DataTypeName(tensor.type));
  if (form == InferForm::kBinary) {
    out += Format("\"parameters\":{{\"binary_data_size\":{}}}}}", tensor.data.size());
    return {};
  }
  out += "\"data\":[";
  TANDEM_TRY(AppendData(tensor, out));
  out += "]}";
  return {};
}

Result<std::string> InferJson(const InferRequestOptions& options, const std::vector<Tensor>& inputs) {
  std::string json = "{\"inputs\":[";
  for (const Tensor& tensor : inputs) {
    if (&tensor != &inputs.front()) json += ',';
    TANDEM_TRY(AppendInput(tensor, options.form, json));
  }
  json += ']';
  std::string parameters;
  if (options.binary_output && options.outputs.empty()) parameters = "\"binary_data_output\":true";
  if (options.priority) {
    parameters += Format("{}\"priority\":{}", parameters.empty() ? "" : ",", *options.priority);
  }
  if (!parameters.empty()) json += ",\"parameters\":{" + parameters + "}";
  if (!options.outputs.empty()) {
    json += ",\"outputs\":[";
    for (const std::string& name : options.outputs) {
      if (&name != &options.outputs.front()) json += ',';
      json += "{\"name\":";
      AppendJsonString(name, json);
      json += Format(",\"parameters\":{{\"binary_data\":{}}}}}", options.binary_output);
    }
    json += ']';
  }
  json += '}';
  return json;
}

void FillRandom(DataType type, std::span<std::byte> out, std::mt19937_64& random) {
  const auto fill = [&]<typename T>(T (*make)(std::uint64_t)) {
    for (std::size_t i = 0; i + sizeof(T) <= out.size(); i += sizeof(T)) {
      const T value = make(random());
      std::memcpy(out.data() + i, &value, sizeof value);
    }
  };
  switch (type) {
    case DataType::kFp32: return fill(+[](std::uint64_t r) { return static_cast<float>(r >> 40) * 0x1p-24F; });
    case DataType::kFp64: return fill(+[](std::uint64_t r) { return static_cast<double>(r >> 11) * 0x1p-53; });
    // 1.0 with a random fraction.
    case DataType::kFp16: return fill(+[](std::uint64_t r) { return static_cast<std::uint16_t>(0x3c00 | (r >> 54)); });
    case DataType::kBf16: return fill(+[](std::uint64_t r) { return static_cast<std::uint16_t>(0x3f80 | (r >> 57)); });
    case DataType::kBool: return fill(+[](std::uint64_t r) { return static_cast<std::uint8_t>(r >> 63); });
    default: break;
  }
  switch (DataTypeSize(type)) {
    case 1: return fill(+[](std::uint64_t r) { return static_cast<std::uint8_t>(r % 10); });
    case 2: return fill(+[](std::uint64_t r) { return static_cast<std::uint16_t>(r % 10); });
    case 4: return fill(+[](std::uint64_t r) { return static_cast<std::uint32_t>(r % 10); });
    default: return fill(+[](std::uint64_t r) { return static_cast<std::uint64_t>(r % 10); });
  }
}

Bytes RandomWords(std::int64_t count, std::mt19937_64& random) {
  std::string wire;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string word;
    for (std::uint64_t r = random(), length = 4 + r % 5; word.size() < length; r /= 26) {
      word += static_cast<char>('a' + r % 26);
    }
    AppendBytesElement(word, wire);
  }
  AlignedBuffer buffer(wire.size());
  std::ranges::copy(std::as_bytes(std::span(wire)), buffer.data());
  return Bytes::Own(std::move(buffer));
}

}  // namespace

Result<std::vector<Tensor>> RandomInputs(const ModelSignature& signature, const RandomInputOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<Tensor> inputs;
  for (const TensorSpec& spec : signature.inputs) {
    if (spec.optional) continue;
    Tensor tensor{.name = spec.name, .type = spec.type, .shape = spec.shape, .data = {}};
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (tensor.shape[i] < 0) tensor.shape[i] = i == 0 ? options.batch : options.variable_size;
    }
    TANDEM_ASSIGN(const std::int64_t count, ElementCount(tensor.shape));
    // A word is 4 bytes of length and at most 8 letters.
    const auto element_size = spec.type == DataType::kBytes ? 12 : static_cast<std::int64_t>(DataTypeSize(spec.type));
    if (count > options.max_bytes / element_size) {
      return Invalid("input '{}' with shape {} would be larger than {} bytes", Excerpt(spec.name),
                     ShapeText(tensor.shape), options.max_bytes);
    }
    if (spec.type == DataType::kBytes) {
      tensor.data = RandomWords(count, random);
    } else {
      AlignedBuffer buffer(static_cast<std::size_t>(count * element_size));
      FillRandom(spec.type, buffer.span(), random);
      tensor.data = Bytes::Own(std::move(buffer));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Result<HttpRequest> BuildInferRequest(const InferRequestOptions& options, const std::vector<Tensor>& inputs) {
  TANDEM_ASSIGN(const std::string json, InferJson(options, inputs));
  HttpRequest request;
  std::size_t length = json.size();
  if (options.form == InferForm::kBinary) {
    for (const Tensor& tensor : inputs) {
      length += tensor.data.size();
      request.parts.push_back(tensor.data);
    }
  }
  request.head = "POST /v2/models/" + PathSegment(options.model);
  if (!options.version.empty()) request.head += "/versions/" + PathSegment(options.version);
  request.head +=
      Format("/infer HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", HostAndPort(options.host, options.port), length);
  if (options.form == InferForm::kBinary) {
    request.head +=
        Format("Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {}\r\n", json.size());
  } else {
    request.head += "Content-Type: application/json\r\n";
  }
  for (const auto& [name, value] : options.headers) {
    if ((name + value).find_first_of("\r\n") != std::string::npos) {
      return Invalid("header '{}' contains a line break", Excerpt(name));
    }
    request.head += Format("{}: {}\r\n", name, value);
  }
  request.head += "\r\n";
  request.head += json;
  return request;
}

HttpRequest BuildGet(const std::string& host, int port, const std::string& path) {
  return {.head = Format("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", path, HostAndPort(host, port)), .parts = {}};
}

}  // namespace tandem::loadgen
