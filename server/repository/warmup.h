#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/inference_session.h"
#include "server/repository/layout.h"
#include "server/repository/model_settings.h"

namespace tandem::repository {

// Inputs that run before a version is called ready, so that the first client does not pay for what is lazy.
struct WarmupSample {
  std::string name;
  std::vector<Tensor> inputs;
  std::uint32_t runs = 1;
};

// The samples of `model_warmup`; none when the configuration has none. Data files come from the model's folder
// `warmup`. The error names the sample and the input.
[[nodiscard]] Result<std::vector<WarmupSample>> BuildWarmup(const ModelFolder& model, const ModelSettings& settings);

// One run over zeros, every variable dimension 1; nothing when that would be unreasonably large.
[[nodiscard]] std::optional<WarmupSample> DefaultWarmup(const ModelSettings& settings);

// Runs a sample for all outputs of the signature. The error names the sample; kCancelled when `cancel` ended it.
[[nodiscard]] Status RunWarmup(InferenceSession& session, const ModelSignature& signature, const WarmupSample& sample,
                               CancelToken& cancel);

}  // namespace tandem::repository
