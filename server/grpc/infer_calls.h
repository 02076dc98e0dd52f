#pragma once

#include <memory>

#include "server/grpc/call.h"
#include "server/grpc/front_end_parts.h"

// The inference calls: from bytes to InferenceService and back.
//
// Lifetime of the tensors: inputs are views into the request message, and a dispatcher may let go of them after it has
// answered, when gRPC has long freed what belonged to the call. So the message is not the call's: it is parsed from the
// call's bytes into a message of its own, which the tensors' Bytes own together. The call's bytes are freed once
// parsed.
namespace tandem::grpc_front {

// Answers a ModelInfer call.
[[nodiscard]] std::shared_ptr<CallHandler> MakeInfer(FrontEndParts& parts, Call& call);

// Answers a ModelStreamInfer call.
[[nodiscard]] std::shared_ptr<CallHandler> MakeInferStream(FrontEndParts& parts, Call& call);

}  // namespace tandem::grpc_front
