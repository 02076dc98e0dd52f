#include "api/wire/grpc_contents.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

using inference::InferTensorContents;

// The field that holds elements of a type; empty for the types that only the raw form can carry.
std::string_view FieldFor(DataType type) {
  switch (type) {
    case DataType::kBool: return "bool_contents";
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32: return "int_contents";
    case DataType::kInt64: return "int64_contents";
    case DataType::kUint8:
    case DataType::kUint16:
    case DataType::kUint32: return "uint_contents";
    case DataType::kUint64: return "uint64_contents";
    case DataType::kFp32: return "fp32_contents";
    case DataType::kFp64: return "fp64_contents";
    case DataType::kBytes: return "bytes_contents";
    case DataType::kFp16:
    case DataType::kBf16: return "";
  }
  return "";
}

Status CheckFields(const InferTensorContents& contents, const Tensor& tensor) {
  const std::string_view wanted = FieldFor(tensor.type);
  const std::array<std::pair<std::string_view, int>, 8> fields = {{
      {"bool_contents", contents.bool_contents_size()},
      {"int_contents", contents.int_contents_size()},
      {"int64_contents", contents.int64_contents_size()},
      {"uint_contents", contents.uint_contents_size()},
      {"uint64_contents", contents.uint64_contents_size()},
      {"fp32_contents", contents.fp32_contents_size()},
      {"fp64_contents", contents.fp64_contents_size()},
      {"bytes_contents", contents.bytes_contents_size()},
  }};
  for (const auto& [name, size] : fields) {
    if (size > 0 && name != wanted) {
      return Invalid("input '{}' is {} but its contents hold {} elements in '{}'", Excerpt(tensor.name),
                     DataTypeName(tensor.type), size, name);
    }
  }
  return {};
}

template <typename To, typename From>
Result<Bytes> Convert(const From& elements, const Tensor& tensor, std::int64_t count) {
  if (elements.size() != count) {
    return Invalid("input '{}': shape {} needs {} elements but '{}' holds {}", Excerpt(tensor.name),
                   ShapeText(tensor.shape), count, FieldFor(tensor.type), elements.size());
  }
  AlignedBuffer buffer(static_cast<std::size_t>(count) * sizeof(To));
  To* const out = reinterpret_cast<To*>(buffer.data());
  for (int i = 0; i < elements.size(); ++i) {
    using Wide = std::remove_cvref_t<decltype(elements[i])>;
    if constexpr (std::is_integral_v<To> && !std::is_same_v<Wide, bool>) {
      if (!std::in_range<To>(elements[i])) {
        return Invalid("input '{}': element {} of '{}' is {}, which does not fit {}", Excerpt(tensor.name), i,
                       FieldFor(tensor.type), elements[i], DataTypeName(tensor.type));
      }
    }
    out[i] = static_cast<To>(elements[i]);
  }
  return Bytes::Own(std::move(buffer));
}

// The count is left to CheckTensorData, which walks BYTES elements anyway.
Bytes JoinStrings(const InferTensorContents& contents) {
  auto text = std::make_shared<std::string>();
  for (const std::string& element : contents.bytes_contents()) AppendBytesElement(element, *text);
  return {std::as_bytes(std::span(*text)), text};
}

}  // namespace

Result<Bytes> ReadTypedContents(const InferTensorContents& contents, const Tensor& tensor) {
  const auto elements = ElementCount(tensor.shape);
  if (!elements) return Invalid("input '{}': {}", Excerpt(tensor.name), elements.error().message);
  const std::int64_t count = *elements;
  if (FieldFor(tensor.type).empty()) {
    return Invalid("input '{}': {} can only be sent in raw_input_contents", Excerpt(tensor.name),
                   DataTypeName(tensor.type));
  }
  TANDEM_TRY(CheckFields(contents, tensor));
  switch (tensor.type) {
    case DataType::kBool: return Convert<std::uint8_t>(contents.bool_contents(), tensor, count);
    case DataType::kInt8: return Convert<std::int8_t>(contents.int_contents(), tensor, count);
    case DataType::kInt16: return Convert<std::int16_t>(contents.int_contents(), tensor, count);
    case DataType::kInt32: return Convert<std::int32_t>(contents.int_contents(), tensor, count);
    case DataType::kInt64: return Convert<std::int64_t>(contents.int64_contents(), tensor, count);
    case DataType::kUint8: return Convert<std::uint8_t>(contents.uint_contents(), tensor, count);
    case DataType::kUint16: return Convert<std::uint16_t>(contents.uint_contents(), tensor, count);
    case DataType::kUint32: return Convert<std::uint32_t>(contents.uint_contents(), tensor, count);
    case DataType::kUint64: return Convert<std::uint64_t>(contents.uint64_contents(), tensor, count);
    case DataType::kFp32: return Convert<float>(contents.fp32_contents(), tensor, count);
    case DataType::kFp64: return Convert<double>(contents.fp64_contents(), tensor, count);
    case DataType::kBytes:
    case DataType::kFp16:
    case DataType::kBf16: break;
  }
  return JoinStrings(contents);
}

}  // namespace tandem
