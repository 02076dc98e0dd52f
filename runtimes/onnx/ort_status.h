#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/result.h"

namespace tandem {

// Owns an object of the C API: OrtPtr<OrtValue> value(raw, {api.ReleaseValue}).
template <typename T>
struct OrtRelease {
  void(ORT_API_CALL* release)(T*) = nullptr;
  void operator()(T* object) const { release(object); }
};
template <typename T>
using OrtPtr = std::unique_ptr<T, OrtRelease<T>>;

// What ONNX Runtime said: made readable (no source paths), bounded, valid UTF-8.
struct OrtFailure {
  OrtErrorCode code = ORT_FAIL;
  std::string message;
};

// Takes the status; nothing when it is a success.
[[nodiscard]] std::optional<OrtFailure> TakeFailure(const OrtApi& api, OrtStatus* status);

// For calls that only fail by our own mistake: kInternal, naming `what`.
[[nodiscard]] Status CheckOrt(const OrtApi& api, OrtStatus* status, std::string_view what);

// The error of a model file that could not be loaded.
[[nodiscard]] Error LoadError(const OrtFailure& failure, std::string_view file);

// The error of a run of the model of that name. What the given data made impossible is the client's mistake, not ours.
[[nodiscard]] Error RunError(const OrtFailure& failure, std::string_view model);

// True when the failure says that a bound output has another shape than the one computed.
[[nodiscard]] bool IsOutputShapeMismatch(const OrtFailure& failure);

}  // namespace tandem
