#include "runtimes/onnx/session_factory.h"

#include <exception>
#include <new>
#include <utility>

#include <malloc.h>

#include "runtimes/onnx/ort_session.h"
#include "runtimes/onnx/plan_session.h"

namespace tandem {
namespace {

Result<std::unique_ptr<InferenceSession>> CreateByKind(const std::shared_ptr<const OrtEnvironment>& environment,
                                                       const SessionSpec& spec) {
  const std::string extension = spec.kind == ModelKind::kByName ? spec.model.extension().string() : "";
  if (spec.kind == ModelKind::kPlan || extension == ".plan") return CreatePlanSession(spec);
  if (spec.kind == ModelKind::kOnnx || extension == ".onnx") return OnnxSession::Load(environment, spec);
  return Fail(ErrorCode::kUnsupported,
              "model '{}': '{}' is neither an ONNX model (.onnx) nor a TensorRT engine (.plan)", spec.name,
              spec.model.filename().string());
}

}  // namespace

Result<std::unique_ptr<InferenceSession>> CreateSession(std::shared_ptr<const OrtEnvironment> environment,
                                                        const SessionSpec& spec) {
  try {
    auto session = CreateByKind(environment, spec);
    ReturnFreedMemory(*environment);
    return session;
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "model '{}' could not be loaded: out of memory", spec.name);
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "model '{}' could not be loaded: {}", spec.name, e.what());
  }
}

void ReturnFreedMemory(const OrtEnvironment& environment) {
  environment.run_memory()->Trim();
#ifndef TANDEM_SANITIZED
  // A sanitizer has an allocator of its own. The C library's then has never been used, and two threads that
  // call this at once find it half made.
  malloc_trim(0);
#endif
}

}  // namespace tandem
