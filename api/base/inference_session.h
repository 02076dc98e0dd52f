#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/base/cancel_token.h"
#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/base/tensor.h"

namespace tandem {

// A model that is ready to run on one device. Implemented in runtimes/, called by colocation/'s dispatcher.
// Thread-safe: several runs may be under way at once.
class InferenceSession {
 public:
  virtual ~InferenceSession() = default;

  [[nodiscard]] virtual const ModelSignature& signature() const = 0;

  // Another session of the same version takes no memory for weights beside this one.
  [[nodiscard]] virtual bool shares_weights() const { return false; }

  // Computes the named outputs, in the order named. `inputs` are checked tensors that match the signature (optional
  // ones may be absent) and stay alive through the call. A cancelled run ends early with kCancelled.
  [[nodiscard]] virtual Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs,
                                                        std::span<const std::string> outputs, CancelToken& cancel) = 0;
};

}  // namespace tandem
