#include "runtimes/onnx/wire_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem {
namespace {

constexpr std::size_t kWindow = 64 * 1024;
constexpr std::uint64_t kMaxFieldNumber = (1U << 29) - 1;

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

}  // namespace

WireFile::Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
}

WireFile::WireFile(std::unique_ptr<Descriptor> file, std::uint64_t size) : file_(std::move(file)), size_(size) {}

Result<WireFile> WireFile::Open(const std::filesystem::path& path) {
  auto file = std::make_unique<Descriptor>();
  // O_NONBLOCK: a FIFO under a model's name must not stop the loading thread.
  file->fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->fd < 0) {
    return Fail(errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                "cannot open it: {}", ErrnoText(errno));
  }
  struct stat status{};
  if (fstat(file->fd, &status) != 0) return Invalid("cannot read it: {}", ErrnoText(errno));
  if (!S_ISREG(status.st_mode)) return Invalid("it is not a regular file");
  return WireFile(std::move(file), static_cast<std::uint64_t>(status.st_size));
}

Status WireFile::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(file_->fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Invalid("cannot read it at byte {}: {}", offset, ErrnoText(errno));
    if (got == 0) return Invalid("it became shorter while it was read, at byte {}", offset);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Status WireFile::MoveWindow(std::uint64_t offset) {
  if (offset >= window_begin_ && offset - window_begin_ < window_.size()) return {};
  window_.resize(std::min<std::uint64_t>(kWindow, size_ - offset));
  window_begin_ = offset;
  auto read = ReadAt(offset, std::as_writable_bytes(std::span(window_)));
  if (!read) window_.clear();
  return read;
}

Result<std::uint8_t> WireFile::ByteAt(std::uint64_t offset) {
  TANDEM_TRY(MoveWindow(offset));
  return static_cast<std::uint8_t>(window_[offset - window_begin_]);
}

Result<std::uint64_t> WireFile::CountVarints(WireRange packed) {
  std::uint64_t count = 0;
  while (!packed.empty()) {
    TANDEM_TRY(MoveWindow(packed.begin));
    const std::size_t at = packed.begin - window_begin_;
    const std::size_t length = std::min<std::uint64_t>(packed.size(), window_.size() - at);
    const std::string_view part = std::string_view(window_).substr(at, length);
    count += static_cast<std::uint64_t>(std::ranges::count_if(part, [](char byte) { return (byte & 0x80) == 0; }));
    packed.begin += length;
  }
  return count;
}

Result<std::uint64_t> WireFile::NextVarint(WireRange& packed) {
  const std::uint64_t start = packed.begin;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (packed.empty()) return Invalid("the number at byte {} is cut off", start);
    TANDEM_ASSIGN(const std::uint8_t byte, ByteAt(packed.begin++));
    if (shift == 63 && byte > 1) break;
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return Invalid("the number at byte {} has more than 64 bits", start);
}

Result<std::uint64_t> WireFile::Fixed(WireRange& message, int bytes) {
  if (message.size() < static_cast<std::uint64_t>(bytes)) {
    return Invalid("the number at byte {} is cut off", message.begin);
  }
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    TANDEM_ASSIGN(const std::uint8_t byte, ByteAt(message.begin++));
    value |= static_cast<std::uint64_t>(byte) << (8 * i);
  }
  return value;
}

Result<WireField> WireFile::Next(WireRange& message) {
  const std::uint64_t start = message.begin;
  TANDEM_ASSIGN(const std::uint64_t tag, NextVarint(message));
  WireField field;
  if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) return Invalid("the field at byte {} has no valid number", start);
  field.number = static_cast<std::uint32_t>(tag >> 3);
  switch (tag & 7) {
    case 0: {
      TANDEM_ASSIGN(field.value, NextVarint(message));
      return field;
    }
    case 1: {
      field.kind = WireField::Kind::kFixed64;
      TANDEM_ASSIGN(field.value, Fixed(message, 8));
      return field;
    }
    case 2: {
      field.kind = WireField::Kind::kBytes;
      if (++parts_ > kMaxParts) return Invalid("it consists of more than {} parts", kMaxParts);
      TANDEM_ASSIGN(const std::uint64_t length, NextVarint(message));
      if (length > message.size()) {
        return Invalid("the field at byte {} says {} bytes but only {} are left", start, length, message.size());
      }
      field.bytes = {message.begin, message.begin + length};
      message.begin += length;
      return field;
    }
    case 5: {
      field.kind = WireField::Kind::kFixed32;
      TANDEM_ASSIGN(field.value, Fixed(message, 4));
      return field;
    }
    default: return Invalid("the field at byte {} has wire type {}, which ONNX does not use", start, tag & 7);
  }
}

Result<std::string> WireFile::Text(WireRange range, std::size_t limit) {
  if (range.size() > limit) {
    return Invalid("the text at byte {} has {} bytes; at most {} are taken", range.begin, range.size(), limit);
  }
  if (range.size() == 0) return std::string();
  // Names stand among what is being read: mostly they need no call of the system.
  TANDEM_TRY(MoveWindow(range.begin));
  if (const std::size_t at = range.begin - window_begin_; range.size() <= window_.size() - at) {
    return window_.substr(at, range.size());
  }
  std::string text(range.size(), '\0');
  TANDEM_TRY(ReadAt(range.begin, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace tandem
