#pragma once

#include <memory>
#include <optional>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/result.h"
#include "runtimes/onnx/external_weights.h"
#include "runtimes/onnx/onnx_file.h"
#include "runtimes/onnx/ort_environment.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/prepared_model.h"
#include "runtimes/onnx/session_spec.h"

namespace tandem {

// A session of a model file, and what it uses until it goes.
struct LoadedModel {
  OnnxFileInfo file;
  // Shared with the other sessions that have the same weights; null where it has weights of its own.
  std::shared_ptr<const PreparedModel> prepared;
  // The rest is of weights of its own.
  std::optional<WeightClaim> claim;
  ExternalWeights weights;
  OrtPtr<OrtSession> session;  // Last: it goes first.
};

// Checks the file and has ONNX Runtime load it. Errors name the file.
[[nodiscard]] Result<LoadedModel> LoadModel(const OrtEnvironment& environment, const SessionSpec& spec);

}  // namespace tandem
