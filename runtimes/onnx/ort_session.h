#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/inference_session.h"
#include "api/base/mutex.h"
#include "runtimes/onnx/model_load.h"
#include "runtimes/onnx/ort_environment.h"
#include "runtimes/onnx/ort_status.h"
#include "runtimes/onnx/run_slot.h"
#include "runtimes/onnx/session_signature.h"
#include "runtimes/onnx/session_spec.h"

namespace tandem {

// An ONNX model on ONNX Runtime. Made by CreateSession, called by the dispatcher. Thread-safe.
class OnnxSession final : public InferenceSession {
 public:
  [[nodiscard]] static Result<std::unique_ptr<InferenceSession>> Load(std::shared_ptr<const OrtEnvironment> environment,
                                                                      const SessionSpec& spec);

  [[nodiscard]] const ModelSignature& signature() const override { return signature_; }
  [[nodiscard]] bool shares_weights() const override { return loaded_.prepared != nullptr; }
  [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                CancelToken& cancel) override;

 private:
  // How an output is bound.
  struct OutputPlan {
    // The input whose dimension 0 is this output's; -1: the shape is fixed.
    int batch_input = -1;
    // Its shape can be told before the run. Cleared for good when that proved wrong.
    std::atomic<bool> known{false};
  };

  OnnxSession(std::shared_ptr<const OrtEnvironment> environment, const SessionSpec& spec, LoadedModel loaded,
              OrtPtr<OrtMemoryInfo> cpu, const SessionSignature& signature);

  Result<std::vector<Tensor>> RunInSlot(RunSlot& slot, std::span<const Tensor> inputs,
                                        std::span<const std::string> outputs, CancelToken& cancel);
  Status BindInputs(RunSlot& slot, std::span<const Tensor> inputs, std::vector<const Tensor*>& by_index) const;
  Status BindOutputs(RunSlot& slot, std::span<const std::string> outputs, const std::vector<const Tensor*>& inputs,
                     bool use_plans) const;
  // The shape that an output will have; empty when it cannot be told or the output is not worth memory of its own.
  Shape PlannedShape(std::size_t output, const std::vector<const Tensor*>& inputs) const;
  std::optional<OrtFailure> Execute(RunSlot& slot, CancelToken& cancel);
  // Forgets the plans that a run has shown to be wrong: all of them, or those with another shape than in `slot`.
  void DropWrongPlans(std::span<const std::string> outputs, const std::vector<std::optional<Shape>>& planned, bool all,
                      const RunSlot& slot);

  Result<std::unique_ptr<RunSlot>> TakeSlot();
  void ReturnSlot(std::unique_ptr<RunSlot> slot);

  // Constant after construction. The environment is declared first, so that it goes last; shared because a session in
  // use may outlive the repository that made it.
  const std::shared_ptr<const OrtEnvironment> environment_;
  const std::string name_;
  const std::shared_ptr<RunBytes> run_bytes_;  // Shared with whoever counts memory; may be null.
  const LoadedModel loaded_;
  // What results lie in that are not copied: the memory of runs, and the weights where one is an output.
  const std::shared_ptr<const void> results_keep_;
  const OrtPtr<OrtMemoryInfo> cpu_;
  const ModelSignature signature_;
  std::vector<OutputPlan> plans_;  // Parallel to the signature's outputs.

  Mutex mu_;
  std::vector<std::unique_ptr<RunSlot>> idle_slots_ GUARDED_BY(mu_);
};

}  // namespace tandem
