#pragma once

#include <chrono>
#include <optional>

#include "api/base/clock.h"
#include "api/base/inference_session.h"

namespace tandem {

// Runs another session, which its owner may let go of as soon as no run is under way, whoever still has this one. With
// `longest`, all runs together take no longer: what a run notes of its nodes takes memory, and nobody knows how often a
// loop goes round. One run at a time.
class ProfiledSession final : public InferenceSession {
 public:
  // Borrowed: `session` outlives the last run.
  ProfiledSession(InferenceSession& session, const Clock& clock, std::optional<std::chrono::nanoseconds> longest)
      : session_(session), signature_(session.signature()), clock_(clock), left_(longest) {}

  [[nodiscard]] const ModelSignature& signature() const override { return signature_; }
  [[nodiscard]] Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                CancelToken& cancel) override;

 private:
  InferenceSession& session_;
  const ModelSignature signature_;
  const Clock& clock_;
  std::optional<std::chrono::nanoseconds> left_;  // One run after the other.
};

}  // namespace tandem
