#include "server/cli/tensor_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include "api/base/half_float.h"
#include "api/wire/json_text.h"

namespace tandem::cli {
namespace {

template <typename T>
std::string NumberText(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  }
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

template <typename T, typename Text>
std::vector<std::string> Elements(std::span<const std::byte> data, std::size_t at_most, Text text) {
  std::vector<std::string> out;
  const std::size_t count = std::min(data.size() / sizeof(T), at_most);
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
    out.push_back(text(value));
  }
  return out;
}

template <typename T>
std::vector<std::string> Numbers(std::span<const std::byte> data, std::size_t at_most) {
  return Elements<T>(data, at_most, NumberText<T>);
}

bool IsHarmless(std::string_view text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return IsValidUtf8(text) && std::ranges::none_of(text, is_control);
}

std::vector<std::string> Strings(const Tensor& tensor, std::size_t at_most, bool quoted) {
  std::vector<std::string> out;
  for (const std::string_view element : BytesElements(tensor.data.view)) {
    if (out.size() == at_most) break;
    out.push_back(quoted || !IsHarmless(element) ? JsonString(element) : std::string(element));
  }
  return out;
}

std::vector<std::string> ElementTexts(const Tensor& tensor, std::size_t at_most, bool quoted) {
  const auto data = tensor.data.view;
  switch (tensor.type) {
    case DataType::kBool:
      return Elements<std::uint8_t>(data, at_most,
                                    [](std::uint8_t v) { return std::string(v != 0 ? "true" : "false"); });
    case DataType::kUint8: return Numbers<std::uint8_t>(data, at_most);
    case DataType::kUint16: return Numbers<std::uint16_t>(data, at_most);
    case DataType::kUint32: return Numbers<std::uint32_t>(data, at_most);
    case DataType::kUint64: return Numbers<std::uint64_t>(data, at_most);
    case DataType::kInt8: return Numbers<std::int8_t>(data, at_most);
    case DataType::kInt16: return Numbers<std::int16_t>(data, at_most);
    case DataType::kInt32: return Numbers<std::int32_t>(data, at_most);
    case DataType::kInt64: return Numbers<std::int64_t>(data, at_most);
    case DataType::kFp16:
      return Elements<std::uint16_t>(data, at_most, [](std::uint16_t bits) { return NumberText(FromFp16(bits)); });
    case DataType::kBf16:
      return Elements<std::uint16_t>(data, at_most, [](std::uint16_t bits) { return NumberText(FromBf16(bits)); });
    case DataType::kFp32: return Numbers<float>(data, at_most);
    case DataType::kFp64: return Numbers<double>(data, at_most);
    case DataType::kBytes: return Strings(tensor, at_most, quoted);
  }
  return {};
}

}  // namespace

std::vector<std::string> ElementsAsJson(const Tensor& tensor, std::size_t at_most) {
  return ElementTexts(tensor, at_most, true);
}

std::vector<std::string> ElementsAsText(const Tensor& tensor, std::size_t at_most) {
  return ElementTexts(tensor, at_most, false);
}

}  // namespace tandem::cli
