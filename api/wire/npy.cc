#include "api/wire/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <spanstream>
#include <string>
#include <string_view>
#include <utility>

namespace tandem {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 64 * 1024;

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

Result<std::string> ReadHeader(std::istream& in, const std::string& file) {
  std::array<char, 8> start{};
  if (!in.read(start.data(), start.size()) || std::string_view(start.data(), kMagic.size()) != kMagic) {
    return Invalid("'{}' is not a .npy file", file);
  }
  const int length_bytes = start[6] == 1 ? 2 : 4;
  if (start[6] < 1 || start[6] > 3) return Invalid("'{}' has .npy version {}; known: 1 to 3", file, int{start[6]});
  std::uint32_t length = 0;
  if (!in.read(reinterpret_cast<char*>(&length), length_bytes) || length > kMaxHeader) {
    return Invalid("'{}' has a broken .npy header", file);
  }
  std::string header(length, '\0');
  if (!in.read(header.data(), length)) return Invalid("'{}' is cut off in its .npy header", file);
  return header;
}

Result<Tensor> ReadFrom(std::istream& in, const std::string& file, std::uint64_t max_bytes) {
  TANDEM_ASSIGN(const std::string header, ReadHeader(in, file));

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
  TANDEM_ASSIGN(const std::int64_t bytes, ByteSize(*type, *shape));
  if (static_cast<std::uint64_t>(bytes) > max_bytes) {
    return Fail(ErrorCode::kTooLarge, "'{}' holds {} bytes; at most {} are read", file, bytes, max_bytes);
  }
  const auto begin = in.tellg();
  const auto left = in.seekg(0, std::ios::end).tellg() - begin;
  if (left != bytes) {
    return Invalid("'{}' has {} bytes of data, its shape {} needs {}", file, left, ShapeText(*shape), bytes);
  }
  AlignedBuffer data(static_cast<std::size_t>(bytes));
  if (bytes > 0 && !in.seekg(begin).read(reinterpret_cast<char*>(data.data()), bytes)) {
    return Fail(ErrorCode::kInternal, "'{}' cannot be read", file);
  }
  return Tensor{.name = {}, .type = *type, .shape = *std::move(shape), .data = Bytes::Own(std::move(data))};
}

}  // namespace

Result<Tensor> ReadNpy(const std::filesystem::path& path, std::uint64_t max_bytes) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Fail(ErrorCode::kNotFound, "'{}' cannot be read", path.string());
  return ReadFrom(in, path.string(), max_bytes);
}

Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name, std::uint64_t max_bytes) {
  std::ispanstream in{std::span<const char>(bytes)};
  return ReadFrom(in, name, max_bytes);
}

}  // namespace tandem
