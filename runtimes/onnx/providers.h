#pragma once

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/result.h"
#include "runtimes/onnx/ort_library.h"
#include "runtimes/onnx/session_spec.h"

namespace tandem {

// Adds spec.providers to the options of a session, in order. A provider that the library lacks is kUnsupported, naming
// what the library has and what to install; an option that the provider does not know is kInvalidArgument.
[[nodiscard]] Status AppendProviders(const OrtLibrary& library, const SessionSpec& spec, OrtSessionOptions* options);

}  // namespace tandem
