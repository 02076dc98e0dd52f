#include "server/cli/demo_models.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <stdlib.h>

namespace tandem::cli {

namespace fs = std::filesystem;

Result<ScratchFolder> ScratchFolder::Create() {
  std::error_code ec;
  std::string pattern = (fs::temp_directory_path(ec) / "tandem-demo-XXXXXX").string();
  if (ec || ::mkdtemp(pattern.data()) == nullptr) {
    return Fail(ErrorCode::kInternal, "cannot make a temporary folder: {}", std::strerror(errno));
  }
  return ScratchFolder(pattern);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Status LayOutSamples(const fs::path& samples, const std::vector<std::string>& names, const fs::path& repository) {
  for (const std::string& name : names) {
    const fs::path source = samples / ("light_" + name + ".onnx");
    const fs::path folder = repository / name / "1";
    std::error_code ec;
    if (!fs::exists(source, ec)) {
      return Fail(ErrorCode::kNotFound, "sample model '{}' is missing; install libonnx-testdata or give --samples DIR",
                  source.string());
    }
    fs::create_directories(folder, ec);
    if (!ec) fs::copy_file(source, folder / "model.onnx", ec);
    if (ec) return Fail(ErrorCode::kInternal, "cannot copy '{}': {}", source.string(), ec.message());
  }
  return {};
}

}  // namespace tandem::cli
