#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/base/buffer.h"
#include "api/base/mutex.h"
#include "api/base/result.h"

namespace tandem {

// A file that is mapped to be read, as long as this object lives: one of our own, which has no name and which nobody
// else writes. Immutable.
class MappedFile {
 public:
  // Of the descriptor's file, all of it. The descriptor may be closed afterwards.
  [[nodiscard]] static Result<std::shared_ptr<const MappedFile>> Map(int descriptor, std::size_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // Gives the pages back that hold these bytes. Who reads on has them read from the file again.
  static void DropPages(std::span<const std::byte> bytes);

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const std::span<const std::byte> bytes_;
};

// The bytes of a weight, in memory or in a file that is mapped. Immutable. Shared by all models that have the same.
class SharedWeight {
 public:
  explicit SharedWeight(AlignedBuffer buffer) : buffer_(std::move(buffer)), bytes_(buffer_.span()) {}
  // A part of `file`.
  SharedWeight(std::shared_ptr<const MappedFile> file, std::span<const std::byte> part)
      : file_(std::move(file)), bytes_(part) {}
  SharedWeight(const SharedWeight&) = delete;
  SharedWeight& operator=(const SharedWeight&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] bool mapped() const { return file_ != nullptr; }
  // Of a weight that is mapped: nothing of it is in memory until somebody reads it.
  void DropPages() const {
    if (mapped()) MappedFile::DropPages(bytes_);
  }

 private:
  AlignedBuffer buffer_;
  std::shared_ptr<const MappedFile> file_;  // Shared by the weights in it.
  std::span<const std::byte> bytes_;
};

// Knows the weights that are in use, by what they are: what several models have is there once. Thread-safe.
class WeightPool {
 public:
  // For each the one with these bytes that is there already, else itself; one that is in memory is not given for one
  // that is mapped, whose pages go. None is null.
  [[nodiscard]] std::vector<std::shared_ptr<const SharedWeight>> Share(
      std::vector<std::shared_ptr<const SharedWeight>> weights);

  // Of the weights in use: how many, and their bytes.
  struct Count {
    std::size_t weights = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Count InUse() const;

 private:
  mutable Mutex mu_;
  // By a hash of the bytes. One that has gone stands here until the next are shared.
  std::unordered_multimap<std::size_t, std::weak_ptr<const SharedWeight>> known_ GUARDED_BY(mu_);
};

}  // namespace tandem
