#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "api/base/result.h"

namespace tandem::repository {

// A private folder that goes with its object, contents and all. Shared by the model that is served from it and the
// sessions that may still read from it.
class TemporaryFolder {
 public:
  // A new folder below `parent`, readable by this user only.
  [[nodiscard]] static Result<std::shared_ptr<TemporaryFolder>> Create(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path path_;
};

// Files that came with a load call: "<version>/<file name>" → contents. The protocol's "file:" may stand before it.
using OverrideFiles = std::map<std::string, std::string>;

// Writes them into a new temporary folder as a model's folder. A key that is anything but an integer version and a
// plain file name is kInvalidArgument; more than `max_bytes` in all is kTooLarge. Checked before anything is written.
[[nodiscard]] Result<std::shared_ptr<TemporaryFolder>> WriteOverrideFiles(const OverrideFiles& files,
                                                                          const std::filesystem::path& parent,
                                                                          std::uint64_t max_bytes);

}  // namespace tandem::repository
