#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "loadgen/grpc_transport.h"

namespace tandem::loadgen {

// Asks a server over gRPC what it is and what its models take, before a run. Blocks; used by one thread.
class GrpcDescriber {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  // One connection as `options` say, which carries `metadata` with every call. Waits for it.
  [[nodiscard]] static Result<std::unique_ptr<GrpcDescriber>> Connect(GrpcTransportOptions options, Metadata metadata);
  ~GrpcDescriber();
  GrpcDescriber(const GrpcDescriber&) = delete;
  GrpcDescriber& operator=(const GrpcDescriber&) = delete;

  // `version` empty: the server's choice.
  [[nodiscard]] Result<ModelSignature> Describe(const std::string& model, const std::string& version);
  // Name and version as it gives them; empty when it does not.
  [[nodiscard]] std::string ServerName();

 private:
  struct Parts;
  explicit GrpcDescriber(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tandem::loadgen
