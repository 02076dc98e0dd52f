#include "runtimes/onnx/plan_session.h"

namespace tandem {

Result<std::unique_ptr<InferenceSession>> CreatePlanSession(const SessionSpec& spec) {
  return Fail(ErrorCode::kUnsupported,
              "model '{}' is a TensorRT engine ({}); this build has no TensorRT: serve the ONNX file that it was made "
              "from (model.onnx), and for TensorRT speed start tandem with --ort-library pointing at libonnxruntime.so "
              "of the onnxruntime-gpu package and choose the provider 'tensorrt'",
              spec.name, spec.model.filename().string());
}

}  // namespace tandem
