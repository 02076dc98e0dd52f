#include <algorithm>
#include <cstring>
#include <format>
#include <fstream>
#include <span>
#include <string>
#include <utility>

#include <zlib.h>

#include "api/wire/compression.h"
#include "api/wire/json_text.h"
#include "api/wire/npy.h"

namespace tandem {
namespace {

// A .npz file is a ZIP archive of .npy files.
constexpr std::string_view kEndSignature("PK\x05\x06", 4);
constexpr std::string_view kEntrySignature("PK\x01\x02", 4);
constexpr std::string_view kLocalSignature("PK\x03\x04", 4);
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kMaxComment = 65535;
constexpr std::size_t kMaxArrays = 1024;

template <typename T>
T At(std::string_view bytes, std::size_t offset) {
  T value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct Entry {
  std::string_view name;
  std::uint16_t method = 0;
  std::uint32_t crc = 0, packed_size = 0, size = 0, offset = 0;
};

std::unexpected<Error> Broken(const std::string& file, std::string_view what) {
  return Invalid("'{}' is not a .npz file that can be read: {}", file, what);
}

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

// The list of what the archive holds stands at its end.
Result<std::vector<Entry>> ListEntries(std::string_view zip, const std::string& file) {
  const std::string_view tail = zip.substr(zip.size() - std::min(zip.size(), kEndBytes + kMaxComment));
  const std::size_t found = tail.rfind(kEndSignature);
  if (found == std::string_view::npos || tail.size() - found < kEndBytes) return Broken(file, "it is no ZIP archive");
  const std::string_view end = tail.substr(found);
  const std::size_t count = At<std::uint16_t>(end, 10);
  std::size_t at = At<std::uint32_t>(end, 16);
  if (count > kMaxArrays) return Broken(file, std::format("it has more than {} arrays", kMaxArrays));
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    if (at > zip.size() || zip.size() - at < kEntryBytes || !zip.substr(at).starts_with(kEntrySignature)) {
      return Broken(file, "its list of arrays is cut off");
    }
    const std::string_view head = zip.substr(at, kEntryBytes);
    const std::size_t name_size = At<std::uint16_t>(head, 28);
    if (zip.size() - at - kEntryBytes < name_size) return Broken(file, "its list of arrays is cut off");
    entries.push_back({.name = zip.substr(at + kEntryBytes, name_size),
                       .method = At<std::uint16_t>(head, 10),
                       .crc = At<std::uint32_t>(head, 16),
                       .packed_size = At<std::uint32_t>(head, 20),
                       .size = At<std::uint32_t>(head, 24),
                       .offset = At<std::uint32_t>(head, 42)});
    at += kEntryBytes + name_size + At<std::uint16_t>(head, 30) + At<std::uint16_t>(head, 32);
  }
  return entries;
}

// The bytes of one array's file; `holder` keeps what had to be unpacked.
Result<std::string_view> Unpacked(std::string_view zip, const Entry& entry, const std::string& array, Bytes& holder) {
  if (entry.offset > zip.size() || zip.size() - entry.offset < kLocalBytes ||
      !zip.substr(entry.offset).starts_with(kLocalSignature)) {
    return Broken(array, "its place in the archive is wrong");
  }
  const std::string_view head = zip.substr(entry.offset, kLocalBytes);
  const std::size_t begin = entry.offset + kLocalBytes + At<std::uint16_t>(head, 26) + At<std::uint16_t>(head, 28);
  if (begin > zip.size() || zip.size() - begin < entry.packed_size) return Broken(array, "it is cut off");
  std::string_view bytes = zip.substr(begin, entry.packed_size);
  if (entry.method == 8) {
    auto inflated = Inflate(std::as_bytes(std::span(bytes)), "deflate", entry.size);
    if (!inflated) return Broken(array, inflated.error().message);
    holder = *std::move(inflated);
    bytes = {reinterpret_cast<const char*>(holder.view.data()), holder.size()};
  } else if (entry.method != 0) {
    return Broken(array, std::format("it is packed with method {}; known are 0 and 8", entry.method));
  }
  if (bytes.size() != entry.size) return Broken(array, "it has another size than the archive says");
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != entry.crc) return Broken(array, "its checksum is wrong");
  return bytes;
}

}  // namespace

Result<std::vector<Tensor>> ReadNpz(const std::filesystem::path& path, std::uint64_t max_bytes) {
  constexpr std::string_view kSuffix = ".npy";
  const std::string file = path.string();
  TANDEM_ASSIGN(const std::string zip, ReadWhole(path, max_bytes));
  TANDEM_ASSIGN(const std::vector<Entry> entries, ListEntries(zip, file));
  std::vector<Tensor> tensors;
  std::uint64_t left = max_bytes;
  for (const Entry& entry : entries) {
    if (!entry.name.ends_with(kSuffix)) return Broken(file, std::format("'{}' is no array", Excerpt(entry.name)));
    const std::string array = std::format("{}:{}", file, Excerpt(entry.name));
    if (entry.size > left) return Fail(ErrorCode::kTooLarge, "'{}' unpacks to more than {} bytes", file, max_bytes);
    left -= entry.size;
    Bytes holder;
    TANDEM_ASSIGN(const std::string_view bytes, Unpacked(zip, entry, array, holder));
    TANDEM_ASSIGN(Tensor tensor, ParseNpy(bytes, array, max_bytes));
    tensor.name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace tandem
