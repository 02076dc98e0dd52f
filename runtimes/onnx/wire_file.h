#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "api/base/result.h"

namespace tandem {

// A part of a file: bytes begin … end-1.
struct WireRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] bool empty() const { return begin >= end; }
  [[nodiscard]] std::uint64_t size() const { return end - begin; }
};

// One field of a protobuf message, as it stands in the file.
struct WireField {
  enum class Kind : std::uint8_t { kVarint, kFixed64, kBytes, kFixed32 };

  std::uint32_t number = 0;
  Kind kind = Kind::kVarint;
  std::uint64_t value = 0;  // kVarint, kFixed32 and kFixed64.
  WireRange bytes;          // kBytes: text, a nested message or packed numbers.

  [[nodiscard]] bool IsBytes(std::uint32_t wanted) const { return kind == Kind::kBytes && number == wanted; }
};

// A file read as protobuf wire format, field by field, without knowing its schema and without loading it: tensors are
// stepped over. It is read and not mapped, because a mapped file that someone truncates ends the process. Used by one
// thread. Errors say at which byte; the caller adds the file's name.
class WireFile {
 public:
  [[nodiscard]] static Result<WireFile> Open(const std::filesystem::path& path);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] WireRange whole() const { return {0, size_}; }

  // Reads the field at message.begin, which must not be at the end, and moves message.begin past it. An error when it
  // is text or a message and kMaxParts of these were read before: each becomes an object of a hundred bytes and more in
  // whoever parses the file, even when it is empty.
  [[nodiscard]] Result<WireField> Next(WireRange& message);
  static constexpr std::uint64_t kMaxParts = 16'000'000;
  // Calls visit(field) for every field of a message, until it returns an error.
  template <typename Visit>
  [[nodiscard]] Status ForEach(WireRange message, Visit visit) {
    while (!message.empty()) {
      TANDEM_ASSIGN(const WireField field, Next(message));
      TANDEM_TRY(visit(field));
    }
    return {};
  }
  // One number of a packed field; moves packed.begin past it.
  [[nodiscard]] Result<std::uint64_t> NextVarint(WireRange& packed);
  // How many numbers a packed field holds.
  [[nodiscard]] Result<std::uint64_t> CountVarints(WireRange packed);
  // The bytes of a field; an error when there are more than `limit`.
  [[nodiscard]] Result<std::string> Text(WireRange range, std::size_t limit);
  // Fills `out` with the bytes at `offset`.
  [[nodiscard]] Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  struct Descriptor {
    int fd = -1;
    ~Descriptor();
  };

  WireFile(std::unique_ptr<Descriptor> file, std::uint64_t size);
  Result<std::uint8_t> ByteAt(std::uint64_t offset);
  // Makes window_ hold the byte at `offset`, which lies in the file.
  Status MoveWindow(std::uint64_t offset);
  Result<std::uint64_t> Fixed(WireRange& message, int bytes);

  std::unique_ptr<Descriptor> file_;
  std::uint64_t size_ = 0;
  std::string window_;  // Bytes from window_begin_ on.
  std::uint64_t window_begin_ = 0;
  std::uint64_t parts_ = 0;
};

}  // namespace tandem
