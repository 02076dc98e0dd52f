#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "runtimes/training/data/mapped_file.h"

namespace tandem::training {

// The folder below which all data lies. Paths are relative to it, or absolute and inside it; one that leads elsewhere,
// also by a link, is refused as "outside the data root", and what is opened is what was checked. Thread-safe.
class DataRoot {
 public:
  [[nodiscard]] static Result<DataRoot> Open(const std::filesystem::path& root);

  // Maps a regular file.
  [[nodiscard]] Result<MappedFile> Map(const std::string& path) const;
  [[nodiscard]] Result<bool> IsFolder(const std::string& path) const;
  // The names in a folder, sorted by bytes, without hidden ones (with a dot in front). kTooLarge beyond `most`.
  [[nodiscard]] Result<std::vector<std::string>> List(const std::string& folder, std::size_t most) const;

 private:
  explicit DataRoot(std::filesystem::path real) : real_(std::move(real)) {}

  const std::filesystem::path real_;  // Without links.
};

// A path or another text from outside, fit for a message.
[[nodiscard]] std::string Shown(std::string_view text);

}  // namespace tandem::training
