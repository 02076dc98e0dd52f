#include "api/base/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

namespace tandem {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::optional<DataType> TypeOf(std::string_view descr) {
  constexpr std::array<std::pair<std::string_view, DataType>, 12> kTypes = {{{"|b1", DataType::kBool},
                                                                             {"|u1", DataType::kUint8},
                                                                             {"<u2", DataType::kUint16},
                                                                             {"<u4", DataType::kUint32},
                                                                             {"<u8", DataType::kUint64},
                                                                             {"|i1", DataType::kInt8},
                                                                             {"<i2", DataType::kInt16},
                                                                             {"<i4", DataType::kInt32},
                                                                             {"<i8", DataType::kInt64},
                                                                             {"<f2", DataType::kFp16},
                                                                             {"<f4", DataType::kFp32},
                                                                             {"<f8", DataType::kFp64}}};
  for (const auto& [name, type] : kTypes) {
    if (name == descr) return type;
  }
  return std::nullopt;
}

// The text after `'key':` in the header's Python dictionary, without leading blanks.
std::optional<std::string_view> After(std::string_view header, std::string_view key) {
  const auto at = header.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const auto value = header.find_first_not_of(" :", at + key.size());
  if (value == std::string_view::npos) return std::nullopt;
  return header.substr(value);
}

std::optional<Shape> ParseShape(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  const auto close = text.find(')');
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(1, close - 1);
  Shape shape;
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" ,"), rest.size()));
    if (rest.empty()) return shape;
    std::int64_t dim = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), dim);
    if (error != std::errc() || dim < 0 || shape.size() == kMaxRank) return std::nullopt;
    shape.push_back(dim);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  }
}

// The dictionary; what follows it is data.
Result<std::string_view> HeaderText(std::string_view start, const std::string& file) {
  constexpr std::size_t kVersionAt = 6, kLengthAt = 8;
  if (start.size() < kLengthAt || !start.starts_with(kMagic)) return Invalid("'{}' is not a .npy file", file);
  const char version = start[kVersionAt];
  if (version < 1 || version > 3) return Invalid("'{}' has .npy version {}; known: 1 to 3", file, int{version});
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t text_at = kLengthAt + length_bytes;
  std::uint32_t length = 0;
  if (start.size() < text_at) return Invalid("'{}' is cut off in its .npy header", file);
  std::memcpy(&length, start.data() + kLengthAt, length_bytes);
  if (length > kMaxNpyHeader - text_at) return Invalid("'{}' has a broken .npy header", file);
  if (start.size() - text_at < length) return Invalid("'{}' is cut off in its .npy header", file);
  return start.substr(text_at, length);
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view start, const std::string& file) {
  TANDEM_ASSIGN(const std::string_view header, HeaderText(start, file));
  const auto descr = After(header, "'descr'");
  const auto order = After(header, "'fortran_order'");
  const auto shape_text = After(header, "'shape'");
  if (!descr || descr->size() < 5 || !order || !shape_text) return Invalid("'{}' has a broken .npy header", file);
  const std::string_view type_text = descr->substr(1, 3);
  const auto type = TypeOf(type_text);
  if (!type) return Invalid("'{}' has dtype '{}', which the protocol does not know", file, type_text);
  if (!order->starts_with("False")) return Invalid("'{}' is in Fortran order; save it in C order", file);
  auto shape = ParseShape(*shape_text);
  if (!shape) return Invalid("'{}' has a broken shape in its .npy header", file);
  if (const auto bytes = ByteSize(*type, *shape); !bytes) {
    return Fail(bytes.error().code, "'{}': {}", file, bytes.error().message);
  }
  return NpyHeader{.type = *type,
                   .shape = *std::move(shape),
                   .data_offset = static_cast<std::size_t>(header.data() + header.size() - start.data())};
}

}  // namespace tandem
