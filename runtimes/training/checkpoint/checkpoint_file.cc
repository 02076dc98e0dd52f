#include "runtimes/training/checkpoint/checkpoint_file.h"

#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <vector>

#include <ATen/ATen.h>
#include <zlib.h>

#include "runtimes/training/checkpoint/durable_file.h"

namespace tandem::training {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

constexpr std::string_view kMagic = "TANDEMCK";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kMostManifest = std::uint64_t{64} << 20;
constexpr int kMostDimensions = 64;

// zlib takes lengths of 32 bits.
std::uint32_t Checksum(std::uint32_t sum, std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::size_t part = std::min<std::size_t>(data.size(), std::size_t{1} << 30);
    sum =
        static_cast<std::uint32_t>(::crc32(sum, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(part)));
    data = data.subspan(part);
  }
  return sum;
}

// The manifest: numbers and texts, one after the other.
class ManifestWriter {
 public:
  void Number(std::uint64_t value) { Raw(&value, sizeof value); }
  void Text(std::string_view text) {
    Number(text.size());
    Raw(text.data(), text.size());
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void Raw(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string bytes_;
};

class ManifestReader {
 public:
  explicit ManifestReader(std::string_view bytes) : left_(bytes) {}
  // False when it ends too early; then every further read is false, too.
  [[nodiscard]] bool Number(std::uint64_t& value) {
    if (left_.size() < sizeof value) return Broken();
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return true;
  }
  [[nodiscard]] bool Text(std::string& text) {
    std::uint64_t size = 0;
    if (!Number(size) || left_.size() < size) return Broken();
    text = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  [[nodiscard]] bool ended() const { return left_.empty(); }

 private:
  bool Broken() {
    left_ = {};
    return false;
  }
  std::string_view left_;
};

std::span<const std::byte> BytesOf(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Tensors whose sizes were read from a file; the data is still to come.
bool ReadManifest(std::string_view bytes, std::uint64_t data_bytes, Checkpoint& checkpoint) {
  ManifestReader reader(bytes);
  std::uint64_t count = 0;
  if (!reader.Text(checkpoint.state) || !reader.Number(count)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    std::uint64_t type = 0;
    std::uint64_t rank = 0;
    if (!reader.Text(name) || !reader.Number(type) || !reader.Number(rank)) return false;
    if (type >= static_cast<std::uint64_t>(at::ScalarType::NumOptions) || rank > kMostDimensions) return false;
    const auto scalar = static_cast<at::ScalarType>(type);
    std::vector<std::int64_t> shape(rank);
    std::uint64_t need = c10::elementSize(scalar);
    for (std::int64_t& size : shape) {
      std::uint64_t value = 0;
      if (!reader.Number(value)) return false;
      if (value != 0 && need > data_bytes / value) return false;
      need *= value;
      size = static_cast<std::int64_t>(value);
    }
    if (need > data_bytes) return false;
    data_bytes -= need;
    if (!checkpoint.tensors.emplace(std::move(name), at::empty(shape, at::TensorOptions().dtype(scalar))).second)
      return false;
  }
  return reader.ended() && data_bytes == 0;
}

struct Head {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t unused;
  std::uint64_t manifest;
};

}  // namespace

Result<CheckpointSize> WriteCheckpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  ManifestWriter manifest;
  manifest.Text(checkpoint.state);
  manifest.Number(checkpoint.tensors.size());
  for (const auto& [name, tensor] : checkpoint.tensors) {
    manifest.Text(name);
    manifest.Number(static_cast<std::uint64_t>(tensor.scalar_type()));
    manifest.Number(static_cast<std::uint64_t>(tensor.dim()));
    for (const std::int64_t size : tensor.sizes()) manifest.Number(static_cast<std::uint64_t>(size));
  }
  Head head{.magic = {}, .version = kVersion, .unused = 0, .manifest = manifest.bytes().size()};
  std::ranges::copy(kMagic, head.magic.begin());

  TANDEM_ASSIGN(DurableFile out, DurableFile::Create(file));
  CheckpointSize size;
  const auto put = [&](std::span<const std::byte> data) {
    size.checksum = Checksum(size.checksum, data);
    size.bytes += data.size();
    return out.Write(data);
  };
  TANDEM_TRY(put(BytesOf(head)));
  TANDEM_TRY(put(std::as_bytes(std::span(manifest.bytes()))));
  for (const auto& [name, tensor] : checkpoint.tensors) TANDEM_TRY(put(BytesOf(tensor.contiguous())));
  TANDEM_TRY(out.Write(BytesOf(size.checksum)));
  size.bytes += sizeof size.checksum;
  TANDEM_TRY(out.Commit());
  return size;
}

Result<Checkpoint> ReadCheckpoint(const std::filesystem::path& file) {
  std::error_code ec;
  const std::uint64_t total = std::filesystem::file_size(file, ec);
  std::ifstream in(file, std::ios::binary);
  if (ec || !in) return Fail(ErrorCode::kNotFound, "checkpoint '{}' cannot be opened", file.string());
  const auto broken = [&](const char* why) { return Invalid("checkpoint '{}' is {}", file.string(), why); };

  std::uint32_t sum = 0;
  const auto take = [&](void* into, std::size_t size) {
    in.read(static_cast<char*>(into), static_cast<std::streamsize>(size));
    sum = Checksum(sum, {static_cast<const std::byte*>(into), size});
    return in.good();
  };
  Head head{};
  if (total < sizeof head + sizeof sum || !take(&head, sizeof head)) return broken("torn");
  if (std::string_view(head.magic.data(), head.magic.size()) != kMagic) return broken("no checkpoint");
  if (head.version != kVersion) return broken("of another version");
  const std::uint64_t content = total - sizeof head - sizeof sum;
  if (head.manifest > kMostManifest || head.manifest > content) return broken("torn");
  std::string manifest(head.manifest, '\0');
  if (!take(manifest.data(), manifest.size())) return broken("torn");
  Checkpoint checkpoint;
  if (!ReadManifest(manifest, content - head.manifest, checkpoint)) return broken("torn or corrupt");
  for (auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.nbytes() > 0 && !take(tensor.data_ptr(), tensor.nbytes())) return broken("torn");
  }
  std::uint32_t written = 0;
  in.read(reinterpret_cast<char*>(&written), sizeof written);
  if (!in || written != sum) return broken("corrupt: its checksum does not fit");
  return checkpoint;
}

}  // namespace tandem::training
