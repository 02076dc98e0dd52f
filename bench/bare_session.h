#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "bench/context.h"
#include "loadgen/latency_histogram.h"
#include "runtimes/onnx/ort_environment.h"

namespace tandem::bench {

// ONNX Runtime in this process, with the thread settings of the server; opened by the first call.
[[nodiscard]] Result<std::shared_ptr<const OrtEnvironment>> SharedEnvironment(BenchContext& context);

enum class BareThreads : std::uint8_t {
  kShared,    // The environment's pool, as the server has it.
  kSpinning,  // A pool of its own that polls when idle: what ONNX Runtime does when nobody says otherwise.
};

// A model in ONNX Runtime with nothing around it: what a server is measured against. Used by one thread.
class BareSession {
 public:
  [[nodiscard]] static Result<std::unique_ptr<BareSession>> Load(std::shared_ptr<const OrtEnvironment> environment,
                                                                 const std::filesystem::path& model,
                                                                 BareThreads threads, int thread_count);
  ~BareSession();
  BareSession(const BareSession&) = delete;
  BareSession& operator=(const BareSession&) = delete;

  [[nodiscard]] const ModelSignature& signature() const;
  [[nodiscard]] Status SetInputs(std::vector<Tensor> inputs);
  // Computes all outputs and drops them.
  [[nodiscard]] Status Run();

 private:
  struct Parts;
  explicit BareSession(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

// Runs one after another for `warmup`, then for `window`, and times those of the window.
[[nodiscard]] Result<loadgen::LatencyHistogram> TimeRuns(BareSession& session, std::chrono::nanoseconds warmup,
                                                         std::chrono::nanoseconds window);

// A model as scenarios name it, in the context's environment.
[[nodiscard]] Result<std::unique_ptr<BareSession>> LoadBare(BenchContext& context, const std::string& model,
                                                            BareThreads threads);

}  // namespace tandem::bench
