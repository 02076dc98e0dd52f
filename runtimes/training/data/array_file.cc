#include "runtimes/training/data/array_file.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include <zlib.h>

#include "api/base/format.h"
#include "api/base/npy_header.h"
#include "api/base/npz_directory.h"

namespace tandem::training {
namespace {

// Deflate makes of one byte at most this many.
constexpr std::uint64_t kMostDeflateRatio = 1032;

std::string_view TextOf(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.view.data()), bytes.size()};
}

// The array in the bytes of a .npy file.
Result<Tensor> ParseArray(const Bytes& file, std::string name) {
  TANDEM_ASSIGN(NpyHeader header, ParseNpyHeader(TextOf(file).substr(0, kMaxNpyHeader), name));
  TANDEM_ASSIGN(const std::int64_t size, ByteSize(header.type, header.shape));
  const std::size_t left = file.size() - header.data_offset;
  if (left != static_cast<std::size_t>(size)) {
    return Invalid("'{}' has {} bytes of data, its shape {} needs {}", name, left, ShapeText(header.shape), size);
  }
  return Tensor{.name = std::move(name),
                .type = header.type,
                .shape = std::move(header.shape),
                .data = file.Part(header.data_offset, left)};
}

Result<Bytes> MapShared(const DataRoot& root, const std::string& path) {
  TANDEM_ASSIGN(MappedFile mapped, root.Map(path));
  // Shared by all arrays of the file.
  auto owner = std::make_shared<const MappedFile>(std::move(mapped));
  const auto view = std::as_bytes(std::span(owner->bytes()));
  return Bytes{view, std::move(owner)};
}

struct InflateEnd {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

// Fills `out` exactly. zlib counts in 32 bits, so both sides are handed to it in pieces.
bool InflateInto(std::span<const std::byte> packed, std::span<std::byte> out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  const std::unique_ptr<z_stream, InflateEnd> ends(&stream);
  const auto piece = [](std::size_t left) {
    return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
  };
  int status = Z_OK;
  while (status == Z_OK) {
    const uInt in_size = piece(packed.size());
    const uInt out_size = piece(out.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream.avail_in = in_size;
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = out_size;
    status = inflate(&stream, Z_NO_FLUSH);
    packed = packed.subspan(in_size - stream.avail_in);
    out = out.subspan(out_size - stream.avail_out);
  }
  return status == Z_STREAM_END && packed.empty() && out.empty();
}

// The .npy file that an entry unpacks to. `left` is how many bytes may still be held.
Result<Bytes> Unpack(std::span<const std::byte> packed, const NpzEntry& entry, const std::string& array,
                     std::uint64_t& left) {
  if (entry.size > left) {
    return Fail(ErrorCode::kTooLarge,
                "'{}' would unpack to {} bytes, and only {} more may be held; save it with np.savez instead of "
                "np.savez_compressed",
                array, entry.size, left);
  }
  if (entry.size / kMostDeflateRatio > packed.size()) return BrokenNpz(array, "it cannot unpack to its size");
  AlignedBuffer buffer;
  try {
    buffer = AlignedBuffer(entry.size);
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "there is no memory to unpack '{}' to {} bytes", array, entry.size);
  }
  if (!InflateInto(packed, buffer.span())) return BrokenNpz(array, "its packed data is broken");
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(buffer.data()), buffer.size());
  if (crc != entry.crc) return BrokenNpz(array, "its checksum is wrong");
  left -= entry.size;
  return Bytes::Own(std::move(buffer));
}

std::string NamesIn(const std::vector<NpzEntry>& entries) {
  std::string names;
  for (const NpzEntry& entry : entries) {
    if (!entry.name.ends_with(kNpySuffix)) continue;
    names += names.empty() ? "'" : ", '";
    names += entry.name.substr(0, entry.name.size() - kNpySuffix.size());
    names += "'";
  }
  return names.empty() ? "none" : Shown(names);
}

Result<std::vector<Tensor>> OpenNpz(const DataRoot& root, const std::string& path,
                                    const std::vector<std::string>& names, const DataLimits& limits) {
  TANDEM_ASSIGN(const Bytes zip, MapShared(root, path));
  TANDEM_ASSIGN(const std::vector<NpzEntry> entries, ListNpz(TextOf(zip), Shown(path)));
  std::uint64_t left = limits.unpacked_bytes;
  std::vector<Tensor> arrays;
  for (const std::string& name : names) {
    const auto entry = std::ranges::find(entries, name + std::string(kNpySuffix), &NpzEntry::name);
    if (entry == entries.end()) {
      return Fail(ErrorCode::kNotFound, "'{}' has no array '{}'; it has {}", Shown(path), Shown(name),
                  NamesIn(entries));
    }
    const std::string array = Format("{}:{}", Shown(path), Shown(name));
    TANDEM_ASSIGN(const std::string_view packed, PackedBytes(TextOf(zip), *entry, array));
    Bytes file{std::as_bytes(std::span(packed)), zip.owner};
    if (entry->method == kNpzDeflated) {
      TANDEM_ASSIGN(file, Unpack(file.view, *entry, array, left));
    } else if (entry->method != kNpzStored) {
      return BrokenNpz(array, Format("it is packed with method {}; known are 0 and 8", entry->method));
    }
    TANDEM_ASSIGN(Tensor tensor, ParseArray(file, array));
    arrays.push_back(std::move(tensor));
  }
  return arrays;
}

}  // namespace

Result<std::vector<Tensor>> OpenNamedArrays(const DataRoot& root, const std::string& path,
                                            const std::vector<std::string>& names, const DataLimits& limits) {
  TANDEM_ASSIGN(const bool folder, root.IsFolder(path));
  if (!folder) return OpenNpz(root, path, names, limits);
  std::vector<Tensor> arrays;
  for (const std::string& name : names) {
    const std::string file = Format("{}/{}{}", path, name, kNpySuffix);
    TANDEM_ASSIGN(const Bytes bytes, MapShared(root, file));
    TANDEM_ASSIGN(Tensor tensor, ParseArray(bytes, Shown(file)));
    arrays.push_back(std::move(tensor));
  }
  return arrays;
}

}  // namespace tandem::training
