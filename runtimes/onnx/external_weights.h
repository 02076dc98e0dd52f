#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/buffer.h"
#include "api/base/result.h"
#include "runtimes/onnx/onnx_file.h"
#include "runtimes/onnx/ort_status.h"

namespace tandem {

// Weights from external files, read into memory and handed to ONNX Runtime, which would otherwise keep the files
// mapped as long as the session lives: overwriting such a file in place would change a model that is being served, or
// end the process. Lives from the session's options until the session is made (ONNX Runtime copies the values).
class ExternalWeights {
 public:
  // Files that are larger than this in total stay mapped, because the copies would need three times their size while
  // the model is loaded.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

  // Reads the main graph's tensors, which CheckExternalData has accepted, and adds them to `options`.
  [[nodiscard]] static Result<ExternalWeights> Add(const OrtApi& api, const std::filesystem::path& folder,
                                                   std::span<const ExternalTensor> tensors, OrtSessionOptions* options);

 private:
  std::vector<AlignedBuffer> buffers_;
  std::vector<OrtPtr<OrtValue>> values_;
};

}  // namespace tandem
