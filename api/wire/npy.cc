#include "api/wire/npy.h"

#include <fstream>
#include <span>
#include <spanstream>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/npy_header.h"

namespace tandem {
namespace {

Result<Tensor> ReadFrom(std::istream& in, const std::string& file, std::uint64_t max_bytes) {
  std::string start(kMaxNpyHeader, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(in.gcount()));
  in.clear();
  TANDEM_ASSIGN(NpyHeader header, ParseNpyHeader(start, file));
  TANDEM_ASSIGN(const std::int64_t bytes, ByteSize(header.type, header.shape));
  if (static_cast<std::uint64_t>(bytes) > max_bytes) {
    return Fail(ErrorCode::kTooLarge, "'{}' holds {} bytes; at most {} are read", file, bytes, max_bytes);
  }
  const auto begin = static_cast<std::istream::off_type>(header.data_offset);
  const std::istream::off_type left = in.seekg(0, std::ios::end).tellg() - std::istream::pos_type(begin);
  if (left != bytes) {
    return Invalid("'{}' has {} bytes of data, its shape {} needs {}", file, left, ShapeText(header.shape), bytes);
  }
  AlignedBuffer data(static_cast<std::size_t>(bytes));
  if (bytes > 0 && !in.seekg(begin).read(reinterpret_cast<char*>(data.data()), bytes)) {
    return Fail(ErrorCode::kInternal, "'{}' cannot be read", file);
  }
  return Tensor{.name = {}, .type = header.type, .shape = std::move(header.shape), .data = Bytes::Own(std::move(data))};
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
