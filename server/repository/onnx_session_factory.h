#pragma once

#include <memory>

#include "runtimes/onnx/ort_environment.h"
#include "server/repository/session_factory.h"

namespace tandem::repository {

// Sessions on ONNX Runtime. Thread-safe: constant after construction.
class OnnxSessionFactory final : public SessionFactory {
 public:
  // Shared because every session keeps the environment, too.
  explicit OnnxSessionFactory(std::shared_ptr<const OrtEnvironment> environment)
      : environment_(std::move(environment)) {}

  [[nodiscard]] Result<std::unique_ptr<InferenceSession>> Create(const SessionRequest& request) override;
  void ReturnMemory() override;
  [[nodiscard]] std::map<std::string, std::string> Metadata(const SessionRequest& request) override;
  [[nodiscard]] Result<GraphExtent> Extent(const SessionRequest& request) override;

 private:
  const std::shared_ptr<const OrtEnvironment> environment_;
};

}  // namespace tandem::repository
