#include "api/wire/rest_infer_encode.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

// Room for any number: the shortest form of a double has at most 24 characters, a 64-bit integer 20.
constexpr std::size_t kNumberChars = 32;

void AppendUnsigned(std::uint64_t value, std::string& out) {
  char text[kNumberChars];
  out.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void AppendMember(std::string_view key, std::string& out) {
  out += '"';
  out += key;
  out += "\":";
}

template <typename T>
char* WriteNumber(T value, char* at) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) [[unlikely]] {
      const std::string_view token = std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
      std::memcpy(at, token.data(), token.size());
      return at + token.size();
    }
    // Shortest would be "-0", which readers take for the integer 0 and so lose the sign.
    if (value == 0 && std::signbit(value)) [[unlikely]]
      return std::ranges::copy(std::string_view("-0.0"), at).out;
  }
  return std::to_chars(at, at + kNumberChars, value).ptr;
}

// `data` need not be aligned for T: it may be a part of a larger buffer.
template <typename T>
void AppendNumbers(std::span<const std::byte> data, std::string& out) {
  constexpr std::size_t kBlock = 256;
  char text[kBlock * (kNumberChars + 1)];
  const std::size_t count = data.size() / sizeof(T);
  for (std::size_t done = 0; done < count;) {
    char* at = text;
    const std::size_t end = std::min(count, done + kBlock);
    for (; done < end; ++done) {
      T value;
      std::memcpy(&value, data.data() + done * sizeof(T), sizeof(T));
      if (done > 0) *at++ = ',';
      at = WriteNumber(value, at);
    }
    out.append(text, at);
  }
}

void AppendBools(std::span<const std::byte> data, std::string& out) {
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (i > 0) out += ',';
    out += data[i] == std::byte{0} ? "false" : "true";
  }
}

// Not through BytesElements(): a list of millions of empty elements would be four times their size.
Status AppendStrings(const Tensor& tensor, std::string& out) {
  std::string_view rest(reinterpret_cast<const char*>(tensor.data.view.data()), tensor.data.size());
  for (bool first = true; !rest.empty(); first = false) {
    std::uint32_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    const std::string_view element = rest.substr(sizeof size, size);
    rest.remove_prefix(sizeof size + size);
    if (!IsValidUtf8(element)) {
      return Invalid("output '{}' holds BYTES that are not UTF-8 text: ask for it with 'binary_data'",
                     Excerpt(tensor.name));
    }
    if (!first) out += ',';
    AppendJsonString(element, out);
  }
  return {};
}

Status AppendElements(const Tensor& tensor, std::string& out) {
  const std::span<const std::byte> data = tensor.data.view;
  switch (tensor.type) {
    case DataType::kBool: AppendBools(data, out); return {};
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
    case DataType::kBytes: return AppendStrings(tensor, out);
    case DataType::kFp16:
    case DataType::kBf16: break;
  }
  return Invalid("output '{}' is {}, which has no JSON form: ask for it with 'binary_data'", Excerpt(tensor.name),
                 DataTypeName(tensor.type));
}

Status AppendOutput(const Tensor& tensor, const RequestedOutput* requested, bool binary_output, EncodedInfer& encoded) {
  std::string& out = encoded.json;
  out += '{';
  AppendMember("name", out);
  AppendJsonString(tensor.name, out);
  out += ',';
  AppendMember("datatype", out);
  AppendJsonString(DataTypeName(tensor.type), out);
  out += ',';
  AppendMember("shape", out);
  out += ShapeText(tensor.shape);
  // `parameters` stay out of all but binary outputs: Triton's C++ client fails on them without `binary_data_size`.
  if (requested != nullptr && requested->shared) {
    // Nothing more.
  } else if (requested != nullptr ? requested->binary.value_or(binary_output) : binary_output) {
    out += ",\"parameters\":{";
    AppendMember("binary_data_size", out);
    AppendUnsigned(tensor.data.size(), out);
    out += '}';
    encoded.parts.push_back(tensor.data);
    encoded.has_binary = true;
  } else {
    out += ',';
    AppendMember("data", out);
    out += '[';
    TANDEM_TRY(AppendElements(tensor, out));
    out += ']';
  }
  out += '}';
  return {};
}

}  // namespace

Result<EncodedInfer> EncodeRestInfer(const InferResponse& response, std::span<const RequestedOutput> requested,
                                     bool binary_output) {
  if (!requested.empty() && requested.size() != response.outputs.size()) {
    return Fail(ErrorCode::kInternal, "{} outputs were asked for but {} were made", requested.size(),
                response.outputs.size());
  }
  EncodedInfer encoded;
  std::string& out = encoded.json;
  out += '{';
  AppendMember("model_name", out);
  AppendJsonString(response.model, out);
  out += ',';
  AppendMember("model_version", out);
  AppendJsonString(response.version, out);
  if (!response.id.empty()) {
    out += ',';
    AppendMember("id", out);
    AppendJsonString(response.id, out);
  }
  out += ',';
  AppendMember("outputs", out);
  out += '[';
  for (std::size_t i = 0; i < response.outputs.size(); ++i) {
    if (i > 0) out += ',';
    TANDEM_TRY(AppendOutput(response.outputs[i], requested.empty() ? nullptr : &requested[i], binary_output, encoded));
  }
  out += "]}";
  return encoded;
}

}  // namespace tandem
