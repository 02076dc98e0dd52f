#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/base/inference_session.h"
#include "colocation/servable.h"

namespace tandem::testing {

// A session whose Run is a function of the test's; by default it returns the first input as every output.
class FakeSession final : public InferenceSession {
 public:
  using RunFunction =
      std::function<Result<std::vector<Tensor>>(std::span<const Tensor>, std::span<const std::string>, CancelToken&)>;

  explicit FakeSession(ModelSignature signature, RunFunction run = {})
      : signature_(std::move(signature)), run_(std::move(run)) {}

  [[nodiscard]] const ModelSignature& signature() const override { return signature_; }

  [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                CancelToken& cancel) override {
    if (run_) return run_(inputs, outputs, cancel);
    std::vector<Tensor> results;
    for (const std::string& name : outputs) {
      Tensor output = inputs.front();
      output.name = name;
      results.push_back(std::move(output));
    }
    return results;
  }

 private:
  const ModelSignature signature_;
  const RunFunction run_;
};

// FP32 input "x" and output "y", both of shape [-1, 2] when batched and [2] when not.
inline ModelSignature PairSignature(bool batched = true) {
  const Shape shape = batched ? Shape{-1, 2} : Shape{2};
  return {.inputs = {{.name = "x", .type = DataType::kFp32, .shape = shape}},
          .outputs = {{.name = "y", .type = DataType::kFp32, .shape = shape}},
          .named_batch = batched};
}

inline std::shared_ptr<Servable> MakeServable(std::string name, BatchSettings batching,
                                              FakeSession::RunFunction run = {}) {
  const ModelSignature signature = PairSignature(batching.max_batch_size > 0);
  return std::make_shared<Servable>(std::move(name), 1, signature, std::move(batching), std::nullopt,
                                    std::make_unique<FakeSession>(signature, std::move(run)));
}

// A tensor over a copy of the values.
template <typename T>
Tensor MakeTensor(std::string name, DataType type, Shape shape, const std::vector<T>& values) {
  AlignedBuffer buffer(values.size() * sizeof(T));
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), buffer.size(), buffer.data());
  return {.name = std::move(name), .type = type, .shape = std::move(shape), .data = Bytes::Own(std::move(buffer))};
}

template <typename T>
std::vector<T> ValuesOf(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  std::copy_n(tensor.data.view.data(), tensor.data.size(), reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace tandem::testing
