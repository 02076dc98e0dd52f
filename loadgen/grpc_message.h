#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/base/result.h"
#include "loadgen/grpc_transport.h"

namespace tandem::loadgen {

// The bytes of the ModelInferRequest. kInvalidArgument: an input whose data do not fit its shape, or too many bytes.
[[nodiscard]] Result<std::string> SerialiseInferRequest(const GrpcInferRequest& request);

// gRPC ends the process over metadata that HTTP/2 cannot carry. The error names the entry, but not its value, which may
// be a secret.
[[nodiscard]] Status CheckMetadata(const std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace tandem::loadgen
