#pragma once

#include <memory>

#include "api/base/inference_session.h"
#include "runtimes/onnx/session_spec.h"

namespace tandem {

// Loads a TensorRT engine (model.plan). Called by CreateSession. This build has no TensorRT: always kUnsupported,
// naming the model and what to do.
[[nodiscard]] Result<std::unique_ptr<InferenceSession>> CreatePlanSession(const SessionSpec& spec);

}  // namespace tandem
