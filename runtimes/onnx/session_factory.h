#pragma once

#include <memory>

#include "api/base/inference_session.h"
#include "runtimes/onnx/ort_environment.h"
#include "runtimes/onnx/session_spec.h"

namespace tandem {

// Loads a model, by the kind of its file: .onnx runs on ONNX Runtime, .plan is a TensorRT engine. May take long and is
// called from a loading thread. Errors name the model: kInvalidArgument for a file that is corrupt or reaches outside
// spec.root, kNotFound for a missing one, kUnsupported for a part that this build or library lacks.
[[nodiscard]] Result<std::unique_ptr<InferenceSession>> CreateSession(std::shared_ptr<const OrtEnvironment> environment,
                                                                      const SessionSpec& spec);

// Gives memory that unloaded models and loading have left in the allocators back to the system. CreateSession does so
// by itself; call it after unloading. Takes milliseconds, so not on a thread that serves.
void ReturnFreedMemory(const OrtEnvironment& environment);

}  // namespace tandem
