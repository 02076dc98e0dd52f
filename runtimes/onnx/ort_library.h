#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

struct OrtApi;

namespace tandem {

// The oldest C API of ONNX Runtime that has every function we call. Nothing in runtimes/onnx may call a function that
// was added later: the table of an older library ends before it.
inline constexpr std::uint32_t kOldestOrtApi = 17;

// An ONNX Runtime shared library, loaded while the program runs: the program itself does not link to it, so a user can
// choose the build (--ort-library). Opened by main() or `doctor`, then owned by OrtEnvironment. Constant after
// construction, thread-safe. The library stays loaded until the process ends: its threads and values may outlive us.
class OrtLibrary {
 public:
  // Loads the library at `path`; an empty path tries the usual names in the system's library folders.
  [[nodiscard]] static Result<std::unique_ptr<const OrtLibrary>> Open(const std::string& path);

  [[nodiscard]] const OrtApi& api() const { return *api_; }
  // The negotiated version: the newer of what our headers and the library both know.
  [[nodiscard]] std::uint32_t api_version() const { return api_version_; }
  // "1.21.0"
  [[nodiscard]] const std::string& version() const { return version_; }
  // The file that was loaded.
  [[nodiscard]] const std::string& path() const { return path_; }
  // Execution providers by ONNX Runtime's names: "CPUExecutionProvider", …
  [[nodiscard]] const std::vector<std::string>& providers() const { return providers_; }
  [[nodiscard]] bool HasProvider(std::string_view ort_name) const;

 private:
  OrtLibrary(const OrtApi* api, std::uint32_t api_version, std::string version, std::string path,
             std::vector<std::string> providers);

  const OrtApi* const api_;  // Owned by the loaded library.
  const std::uint32_t api_version_;
  const std::string version_;
  const std::string path_;
  const std::vector<std::string> providers_;
};

}  // namespace tandem
