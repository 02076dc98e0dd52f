#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/base/result.h"

namespace tandem::training {

// The bytes of a file, mapped read-only for as long as this lives. Move-only. A file that is deleted or replaced
// meanwhile is read on as it was. One that another process shortens is gone under the reader: see GuardMappedFiles.
class MappedFile {
 public:
  MappedFile() = default;
  // Maps the first `size` bytes of an open file. `name` is how messages are to name it.
  [[nodiscard]] static Result<MappedFile> Map(int descriptor, std::size_t size, const std::string& name);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::string_view bytes() const { return {static_cast<const char*>(start_), size_}; }

 private:
  void* start_ = nullptr;
  std::size_t size_ = 0;
  std::size_t place_ = 0;  // Among those that are guarded.
};

// From now on reading what is gone of a mapped file does not end this process (SIGBUS): zeros are read in its place,
// and the file is remembered. Whoever has read asks CheckNoFileLost() before it believes what it read. For the whole
// process, once.
void GuardMappedFiles();

// An error that names a mapped file of which a part is gone, or was when it was read, if there is any. Thread-safe.
[[nodiscard]] Status CheckNoFileLost();

}  // namespace tandem::training
