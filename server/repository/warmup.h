#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/inference_session.h"
#include "server/repository/layout.h"
#include "server/repository/model_settings.h"

namespace tandem::repository {

// Inputs that run before a version is called ready, so that the first client does not pay for what is lazy.
struct WarmupSample {
  std::string name;
  std::vector<Tensor> inputs;
  std::uint32_t runs = 1;
  std::chrono::nanoseconds time_for_repeats = std::chrono::nanoseconds::max();  // After that none begins but the first.
};

// The samples of `model_warmup`; none when the configuration has none. Data files come from the model's folder
// `warmup`. The error names the sample and the input.
[[nodiscard]] Result<std::vector<WarmupSample>> BuildWarmup(const ModelFolder& model, const ModelSettings& settings);

// Zeros, or empty strings, of that shape; an error when it is not a shape or needs more than kMostZeros.
inline constexpr std::int64_t kMostZeros = std::int64_t{1} << 28;
[[nodiscard]] Result<Tensor> ZeroTensor(const TensorSpec& spec, Shape shape);

// A few runs over zeros, every variable dimension 1; nothing when that would be unreasonably large.
[[nodiscard]] std::optional<WarmupSample> DefaultWarmup(const ModelSettings& settings);

// A run of a warm-up that was not the first of its sample: what is lazy had been done.
struct WarmRun {
  std::int64_t elements = 1;
  std::chrono::nanoseconds took{0};
};

// Runs a sample for all outputs of the signature, and adds to `warm` what the runs took. The error names the sample;
// kCancelled when `cancel` ended it.
[[nodiscard]] Status RunWarmup(InferenceSession& session, const ModelSettings& settings, const WarmupSample& sample,
                               const Clock& clock, CancelToken& cancel, std::vector<WarmRun>& warm);

}  // namespace tandem::repository
