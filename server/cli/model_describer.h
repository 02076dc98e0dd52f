#pragma once

#include <memory>
#include <string>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "loadgen/target.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// Asks a server what its models take, over the protocol that it is loaded by. Used by one thread.
class ModelDescriber {
 public:
  // kInvalidArgument: a mistake in the options.
  [[nodiscard]] static Result<std::unique_ptr<ModelDescriber>> Connect(const loadgen::Target& target,
                                                                       const ClientOptions& options);
  virtual ~ModelDescriber() = default;

  // `version` empty: the server's choice.
  [[nodiscard]] virtual Result<ModelSignature> Describe(const std::string& model, const std::string& version) = 0;
  // Name and version as it gives them; empty when it does not.
  [[nodiscard]] virtual std::string ServerName() = 0;
};

}  // namespace tandem::cli
