#pragma once

#include <grpcpp/support/status.h>

#include "api/base/error.h"
#include "api/base/result.h"

namespace tandem::grpc_front {

// The one mapping of tandem's errors to gRPC's codes.
[[nodiscard]] grpc::StatusCode ToGrpcCode(ErrorCode code);

// The message goes to the client as it is, cut to what fits in a trailer.
[[nodiscard]] grpc::Status ToGrpcStatus(const Error& error);
[[nodiscard]] grpc::Status ToGrpcStatus(const Status& status);

// For calls that a draining server ends: none of their requests is lost, so they may be tried elsewhere.
[[nodiscard]] grpc::Status ShuttingDown();

}  // namespace tandem::grpc_front
