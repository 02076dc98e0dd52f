#pragma once

#include <filesystem>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/buffer.h"
#include "api/base/result.h"
#include "runtimes/onnx/onnx_file.h"
#include "runtimes/onnx/ort_status.h"

namespace tandem {

// Weights from external files, read into memory and handed to ONNX Runtime, which would otherwise keep the files
// mapped as long as the session lives: overwriting such a file in place would change a model that is being served, or
// end the process. Made for the session's options, and kept as long as the session.
class ExternalWeights {
 public:
  // Up to this size in total ONNX Runtime copies the main graph's weights into its own format, so that it looks at no
  // file at all. That needs three times their size for a moment; larger ones are lent to it instead, and it maps the
  // files only while it rewrites the graph.
  static constexpr std::uint64_t kMaxCopiedBytes = std::uint64_t{1} << 30;

  // Reads the model's external tensors, which CheckExternalData has accepted, and adds them to `options`. kUnsupported
  // when ONNX Runtime could not be kept from a file: a tensor in an attribute, or one whose name another one has.
  [[nodiscard]] static Result<ExternalWeights> Add(const OrtApi& api, const std::filesystem::path& folder,
                                                   const OnnxFileInfo& model, OrtSessionOptions* options);

  // What ONNX Runtime uses in place; the rest of the model's weights are its own.
  [[nodiscard]] std::uint64_t lent_bytes() const { return lent_bytes_; }
  // Lets go of what ONNX Runtime has copied. Called once the session is made.
  void ReleaseCopied();

 private:
  struct Weight {
    AlignedBuffer buffer;
    OrtPtr<OrtValue> value;
    bool lent = false;
  };

  std::vector<Weight> weights_;
  std::uint64_t lent_bytes_ = 0;
};

}  // namespace tandem
