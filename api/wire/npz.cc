#include <fstream>
#include <span>
#include <string>
#include <utility>

#include <zlib.h>

#include "api/base/format.h"
#include "api/base/npz_directory.h"
#include "api/wire/compression.h"
#include "api/wire/json_text.h"
#include "api/wire/npy.h"

namespace tandem {
namespace {

Result<std::string> ReadWhole(const std::filesystem::path& path, std::uint64_t max_bytes) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || !std::filesystem::is_regular_file(path)) {
    return Fail(ErrorCode::kNotFound, "'{}' cannot be read", path.string());
  }
  const auto size = static_cast<std::uint64_t>(in.tellg());
  if (size > max_bytes) {
    return Fail(ErrorCode::kTooLarge, "'{}' has {} bytes; at most {} are read", path.string(), size, max_bytes);
  }
  std::string bytes(size, '\0');
  if (!in.seekg(0).read(bytes.data(), static_cast<std::streamsize>(size))) {
    return Fail(ErrorCode::kNotFound, "'{}' cannot be read", path.string());
  }
  return bytes;
}

// The bytes of one array's file; `holder` keeps what had to be unpacked.
Result<std::string_view> Unpacked(std::string_view zip, const NpzEntry& entry, const std::string& array,
                                  Bytes& holder) {
  TANDEM_ASSIGN(std::string_view bytes, PackedBytes(zip, entry, array));
  if (entry.method == kNpzDeflated) {
    auto inflated = Inflate(std::as_bytes(std::span(bytes)), "deflate", entry.size);
    if (!inflated) return BrokenNpz(array, inflated.error().message);
    holder = *std::move(inflated);
    bytes = {reinterpret_cast<const char*>(holder.view.data()), holder.size()};
  } else if (entry.method != kNpzStored) {
    return BrokenNpz(array, Format("it is packed with method {}; known are 0 and 8", entry.method));
  }
  if (bytes.size() != entry.size) return BrokenNpz(array, "it has another size than the archive says");
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != entry.crc) return BrokenNpz(array, "its checksum is wrong");
  return bytes;
}

}  // namespace

Result<std::vector<Tensor>> ReadNpz(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const std::string file = path.string();
  TANDEM_ASSIGN(const std::string zip, ReadWhole(path, max_bytes));
  TANDEM_ASSIGN(const std::vector<NpzEntry> entries, ListNpz(zip, file));
  std::vector<Tensor> tensors;
  std::uint64_t left = max_bytes;
  for (const NpzEntry& entry : entries) {
    if (!entry.name.ends_with(kNpySuffix)) return BrokenNpz(file, Format("'{}' is no array", Excerpt(entry.name)));
    const std::string array = Format("{}:{}", file, Excerpt(entry.name));
    if (entry.size > left) return Fail(ErrorCode::kTooLarge, "'{}' unpacks to more than {} bytes", file, max_bytes);
    left -= entry.size;
    Bytes holder;
    TANDEM_ASSIGN(const std::string_view bytes, Unpacked(zip, entry, array, holder));
    TANDEM_ASSIGN(Tensor tensor, ParseNpy(bytes, array, max_bytes));
    tensor.name = entry.name.substr(0, entry.name.size() - kNpySuffix.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace tandem
