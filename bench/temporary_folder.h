#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "api/base/result.h"

namespace tandem::bench {

// A folder of our own, removed with all that is in it. Used by one thread.
class TemporaryFolder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TemporaryFolder>> Make();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path path_;
};

}  // namespace tandem::bench
