#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "api/base/result.h"
#include "bench/report.h"

namespace tandem::bench {

struct ServingOptions {
  bool quick = false;
  std::filesystem::path program;     // The tandem program.
  std::filesystem::path squeezenet;  // The ONNX file.
  std::filesystem::path source;      // The checkout, for the commit.
  std::string ort_library;           // Empty: the system's.
  std::function<void(std::string_view)> say;
  const std::atomic<bool>* stop = nullptr;  // Borrowed; may be null.
};

// How much time and memory the server adds to bare ONNX Runtime, measured side by side. Starts servers as processes and
// ends them; takes minutes.
[[nodiscard]] Result<Report> RunServing(const ServingOptions& options);

}  // namespace tandem::bench
