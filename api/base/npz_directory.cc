#include "api/base/npz_directory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "api/base/format.h"

namespace tandem {
namespace {

constexpr std::string_view kEndSignature("PK\x05\x06", 4);
constexpr std::string_view kWideEndSignature("PK\x06\x06", 4);
constexpr std::string_view kWideLocatorSignature("PK\x06\x07", 4);
constexpr std::string_view kEntrySignature("PK\x01\x02", 4);
constexpr std::string_view kLocalSignature("PK\x03\x04", 4);
constexpr std::size_t kEndBytes = 22, kWideEndBytes = 56, kWideLocatorBytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kMaxComment = 65535;
constexpr std::size_t kMaxArrays = 1024;
constexpr std::uint16_t kWideField = 1;
// Stands where the value is in a wide field.
constexpr std::uint32_t kElsewhere = std::numeric_limits<std::uint32_t>::max();

template <typename T>
T At(std::string_view bytes, std::size_t offset) {
  T value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The `size` bytes at `offset` if they are all there and begin with `signature`.
std::optional<std::string_view> Record(std::string_view zip, std::uint64_t offset, std::size_t size,
                                       std::string_view signature) {
  if (offset > zip.size() || zip.size() - offset < size) return std::nullopt;
  const std::string_view record = zip.substr(offset, size);
  if (!record.starts_with(signature)) return std::nullopt;
  return record;
}

// How many entries there are, and where their list begins.
struct Directory {
  std::uint64_t count = 0, offset = 0;
};

std::optional<Directory> FindDirectory(std::string_view zip) {
  const std::size_t tail_at = zip.size() - std::min(zip.size(), kEndBytes + kMaxComment);
  const std::size_t found = zip.substr(tail_at).rfind(kEndSignature);
  if (found == std::string_view::npos) return std::nullopt;
  const std::size_t end_at = tail_at + found;
  const auto end = Record(zip, end_at, kEndBytes, kEndSignature);
  if (!end) return std::nullopt;
  Directory directory{.count = At<std::uint16_t>(*end, 10), .offset = At<std::uint32_t>(*end, 16)};
  if (end_at < kWideLocatorBytes) return directory;
  const auto locator = Record(zip, end_at - kWideLocatorBytes, kWideLocatorBytes, kWideLocatorSignature);
  if (!locator) return directory;
  const auto wide = Record(zip, At<std::uint64_t>(*locator, 8), kWideEndBytes, kWideEndSignature);
  if (!wide) return std::nullopt;
  return Directory{.count = At<std::uint64_t>(*wide, 32), .offset = At<std::uint64_t>(*wide, 48)};
}

// Takes from `extra` what did not fit the entry's own fields. False when it is not there.
bool TakeWideFields(std::string_view extra, NpzEntry& entry) {
  constexpr std::size_t kFieldHead = 4;
  while (extra.size() >= kFieldHead) {
    const std::size_t size = At<std::uint16_t>(extra, 2);
    if (extra.size() - kFieldHead < size) return false;
    std::string_view field = extra.substr(kFieldHead, size);
    if (At<std::uint16_t>(extra, 0) == kWideField) {
      for (std::uint64_t* value : {&entry.size, &entry.packed_size, &entry.offset}) {
        if (*value != kElsewhere) continue;
        if (field.size() < sizeof *value) return false;
        *value = At<std::uint64_t>(field, 0);
        field.remove_prefix(sizeof *value);
      }
      return true;
    }
    extra.remove_prefix(kFieldHead + size);
  }
  return entry.size != kElsewhere && entry.packed_size != kElsewhere && entry.offset != kElsewhere;
}

}  // namespace

std::unexpected<Error> BrokenNpz(const std::string& name, std::string_view what) {
  return Invalid("'{}' is not a .npz file that can be read: {}", name, what);
}

Result<std::vector<NpzEntry>> ListNpz(std::string_view zip, const std::string& file) {
  const auto directory = FindDirectory(zip);
  if (!directory) return BrokenNpz(file, "it is no ZIP archive");
  if (directory->count > kMaxArrays) return BrokenNpz(file, Format("it has more than {} arrays", kMaxArrays));
  std::vector<NpzEntry> entries;
  std::uint64_t at = directory->offset;
  for (std::uint64_t i = 0; i < directory->count; ++i) {
    const auto head = Record(zip, at, kEntryBytes, kEntrySignature);
    if (!head) return BrokenNpz(file, "its list of arrays is cut off");
    const std::size_t name_size = At<std::uint16_t>(*head, 28);
    const std::size_t extra_size = At<std::uint16_t>(*head, 30);
    const std::string_view rest = zip.substr(at + kEntryBytes);
    if (rest.size() < name_size + extra_size) return BrokenNpz(file, "its list of arrays is cut off");
    NpzEntry entry{.name = rest.substr(0, name_size),
                   .method = At<std::uint16_t>(*head, 10),
                   .crc = At<std::uint32_t>(*head, 16),
                   .packed_size = At<std::uint32_t>(*head, 20),
                   .size = At<std::uint32_t>(*head, 24),
                   .offset = At<std::uint32_t>(*head, 42)};
    if (!TakeWideFields(rest.substr(name_size, extra_size), entry)) {
      return BrokenNpz(file, "its list of arrays has a broken field");
    }
    entries.push_back(entry);
    at += kEntryBytes + name_size + extra_size + At<std::uint16_t>(*head, 32);
  }
  return entries;
}

Result<std::string_view> PackedBytes(std::string_view zip, const NpzEntry& entry, const std::string& array) {
  const auto head = Record(zip, entry.offset, kLocalBytes, kLocalSignature);
  if (!head) return BrokenNpz(array, "its place in the archive is wrong");
  const std::string_view rest = zip.substr(entry.offset + kLocalBytes);
  const std::size_t skip = std::size_t{At<std::uint16_t>(*head, 26)} + At<std::uint16_t>(*head, 28);
  if (rest.size() < skip || rest.size() - skip < entry.packed_size) return BrokenNpz(array, "it is cut off");
  if (entry.method == kNpzStored && entry.packed_size != entry.size) {
    return BrokenNpz(array, "it has another size than the archive says");
  }
  return rest.substr(skip, entry.packed_size);
}

}  // namespace tandem
