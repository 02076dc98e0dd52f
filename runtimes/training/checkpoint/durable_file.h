#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "api/base/result.h"

namespace tandem::training {

// A file that appears under its name only when it is whole and on the disk. Written aside in the same folder; what was
// not committed is removed with the object. One thread.
class DurableFile {
 public:
  [[nodiscard]] static Result<DurableFile> Create(const std::filesystem::path& file);
  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

  [[nodiscard]] Status Write(std::span<const std::byte> data);
  // Flushes the file, renames it and flushes the folder. Nothing may be written afterwards.
  [[nodiscard]] Status Commit();

 private:
  DurableFile(std::filesystem::path file, std::filesystem::path aside, int fd)
      : file_(std::move(file)), aside_(std::move(aside)), fd_(fd) {}
  [[nodiscard]] std::unexpected<Error> Failed(const char* what) const;

  std::filesystem::path file_;
  std::filesystem::path aside_;
  int fd_ = -1;
};

}  // namespace tandem::training
