#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/buffer.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "runtimes/onnx/ort_status.h"

namespace tandem {

// The values of one run under way: inputs bound over the caller's bytes, outputs over our buffers where their shape is
// known. Kept by a session between runs, so that a run allocates little. Used by one thread at a time.
class RunSlot {
 public:
  // `cpu` is borrowed from the session. `memory` is what ONNX Runtime's results lie in; they keep it.
  RunSlot(const OrtApi& api, const OrtMemoryInfo* cpu, OrtPtr<OrtRunOptions> options,
          std::shared_ptr<const void> memory);
  ~RunSlot() { Clear(); }
  RunSlot(const RunSlot&) = delete;
  RunSlot& operator=(const RunSlot&) = delete;

  // Binds an input; `tensor` stays alive until Clear(). Copies only what is misaligned, BYTES, and BOOL that is not
  // 0/1.
  [[nodiscard]] Status AddInput(const char* name, const Tensor& tensor);
  // Adds an output that ONNX Runtime allocates.
  void AddOutput(const char* name);
  // Adds an output of a known shape, at least 16 bytes, with memory of ours.
  [[nodiscard]] Status AddOutput(const char* name, DataType type, Shape shape);
  void ClearOutputs();
  void Clear();

  [[nodiscard]] std::optional<OrtFailure> Run(OrtSession* session);

  [[nodiscard]] OrtRunOptions* options() const { return options_.get(); }
  [[nodiscard]] std::size_t output_count() const { return output_values_.size(); }
  // The shape of an output that has memory of ours.
  [[nodiscard]] std::optional<Shape> PlannedShape(std::size_t output) const;
  // True when we gave memory for the output and a successful run left it alone.
  [[nodiscard]] bool Untouched(std::size_t output) const;
  // The shape that output has, known before or after the run.
  [[nodiscard]] Result<Shape> OutputShape(std::size_t output) const;
  // The computed tensor; once per output.
  [[nodiscard]] Result<Tensor> TakeOutput(std::size_t output, const std::string& name, DataType type);

 private:
  struct Planned {
    AlignedBuffer buffer;  // Empty: ONNX Runtime allocates.
    Shape shape;
  };

  Result<OrtValue*> BindBytes(const Tensor& tensor, const void* data, std::size_t size) const;
  Result<OrtValue*> BindStrings(const Tensor& tensor) const;
  const void* UsableData(const Tensor& tensor);
  Result<Bytes> StringBytes(const OrtValue* value, std::size_t count) const;
  [[nodiscard]] bool PointsIntoInput(const void* data) const;

  const OrtApi& api_;
  const OrtMemoryInfo* const cpu_;
  const OrtPtr<OrtRunOptions> options_;
  const std::shared_ptr<const void> memory_;  // Shared with the environment and other results.
  std::vector<const char*> input_names_;
  std::vector<OrtValue*> input_values_;  // Owned.
  std::vector<std::span<const std::byte>> input_bytes_;
  std::vector<AlignedBuffer> copies_;
  std::vector<const char*> output_names_;
  std::vector<OrtValue*> output_values_;  // Owned.
  std::vector<Planned> planned_;
};

}  // namespace tandem
