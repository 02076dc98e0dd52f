#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "api/base/result.h"

namespace tandem::repository {

// A private folder that goes with its object, contents and all. Shared by the model that is served from it and the
// sessions that may still read from it. Locked while the process lives, so that others can tell it from one that a
// killed process has left behind.
class TemporaryFolder {
 public:
  // A new folder below `parent`, readable by this user only.
  [[nodiscard]] static Result<std::shared_ptr<TemporaryFolder>> Create(const std::filesystem::path& parent);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  TemporaryFolder(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  const std::filesystem::path path_;
  const int descriptor_;  // Owned; holds the lock.
};

// Removes what processes that were killed have left in `parent`: this user's folders that nobody has locked.
void RemoveAbandonedFolders(const std::filesystem::path& parent);

// Files that came with a load call: "<version>/<file name>" → contents. The protocol's "file:" may stand before it.
using OverrideFiles = std::map<std::string, std::string>;

// Writes them into a new temporary folder as a model's folder. A key that is anything but an integer version and a
// plain file name is kInvalidArgument; more than `max_bytes` in all is kTooLarge. Checked before anything is written.
[[nodiscard]] Result<std::shared_ptr<TemporaryFolder>> WriteOverrideFiles(const OverrideFiles& files,
                                                                          const std::filesystem::path& parent,
                                                                          std::uint64_t max_bytes);

}  // namespace tandem::repository
