#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/base/result.h"

namespace tandem::cli {

// A folder that is removed with everything in it when it goes out of scope.
class ScratchFolder {
 public:
  [[nodiscard]] static Result<ScratchFolder> Create();
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// Lays out a model repository of the sample architectures (Debian's libonnx-testdata) named; "squeezenet" is
// light_squeezenet.onnx in `samples`.
[[nodiscard]] Status LayOutSamples(const std::filesystem::path& samples, const std::vector<std::string>& names,
                                   const std::filesystem::path& repository);

}  // namespace tandem::cli
