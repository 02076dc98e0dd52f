#include "api/base/tensor.h"

#include <cstring>

namespace tandem {
namespace {

std::uint32_t ReadLength(const std::byte* p) {
  std::uint32_t length = 0;
  std::memcpy(&length, p, sizeof(length));
  return length;
}

Status CheckBytesElements(const Tensor& tensor, std::int64_t expected) {
  const std::span<const std::byte> data = tensor.data.view;
  std::size_t at = 0;
  std::int64_t count = 0;
  while (at < data.size()) {
    if (count == expected) {
      return Invalid("tensor '{}': {} surplus bytes after its {} BYTES elements of shape {}", tensor.name,
                     data.size() - at, expected, ShapeText(tensor.shape));
    }
    if (data.size() - at < sizeof(std::uint32_t)) {
      return Invalid("tensor '{}': BYTES element {} is cut off: {} bytes are left for its 4-byte length", tensor.name,
                     count, data.size() - at);
    }
    const std::uint32_t length = ReadLength(data.data() + at);
    at += sizeof(length);
    if (length > data.size() - at) {
      return Invalid("tensor '{}': BYTES element {} says {} bytes but only {} are left", tensor.name, count, length,
                     data.size() - at);
    }
    at += length;
    ++count;
  }
  if (count != expected) {
    return Invalid("tensor '{}': shape {} needs {} BYTES elements but the data holds {}", tensor.name,
                   ShapeText(tensor.shape), expected, count);
  }
  return {};
}

}  // namespace

Status CheckTensorData(const Tensor& tensor) {
  if (tensor.type == DataType::kBytes) {
    const auto count = ElementCount(tensor.shape);
    if (!count) return Invalid("tensor '{}': {}", tensor.name, count.error().message);
    return CheckBytesElements(tensor, *count);
  }
  const auto bytes = ByteSize(tensor.type, tensor.shape);
  if (!bytes) return Invalid("tensor '{}': {}", tensor.name, bytes.error().message);
  if (static_cast<std::size_t>(*bytes) != tensor.data.size()) {
    return Invalid("tensor '{}': {} of shape {} needs {} bytes but {} were given", tensor.name,
                   DataTypeName(tensor.type), ShapeText(tensor.shape), *bytes, tensor.data.size());
  }
  return {};
}

std::vector<std::string_view> BytesElements(std::span<const std::byte> data) {
  std::vector<std::string_view> elements;
  std::size_t at = 0;
  while (at < data.size()) {
    const std::uint32_t length = ReadLength(data.data() + at);
    at += sizeof(length);
    elements.emplace_back(reinterpret_cast<const char*>(data.data() + at), length);
    at += length;
  }
  return elements;
}

void AppendBytesElement(std::string_view element, std::string& out) {
  const auto length = static_cast<std::uint32_t>(element.size());
  char prefix[sizeof(length)];
  std::memcpy(prefix, &length, sizeof(length));
  out.append(prefix, sizeof(prefix));
  out.append(element);
}

}  // namespace tandem
