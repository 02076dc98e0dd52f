#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "api/base/result.h"
#include "server/grpc/front_end_parts.h"

// The inference calls: from bytes to InferenceService and back.
//
// Lifetime of the tensors: inputs are views into the request message, and a dispatcher may let go of them after it has
// answered, when gRPC has long freed what belonged to the call. So the message is not the call's: it is parsed from the
// call's bytes into a message of its own, which the tensors' Bytes own together. The call's bytes are freed once
// parsed.
namespace tandem::grpc_front {

// Begins a ModelInfer call. `request` and `answer` belong to the call. The reactor belongs to gRPC until it ends
// itself.
[[nodiscard]] grpc::ServerUnaryReactor* StartInfer(FrontEndParts& parts, grpc::CallbackServerContext& context,
                                                   grpc::ByteBuffer& request, grpc::ByteBuffer& answer);

// Begins a ModelStreamInfer call, or ends it at once with the error in `admitted`.
[[nodiscard]] grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartInferStream(
    FrontEndParts& parts, grpc::CallbackServerContext& context, const Status& admitted);

}  // namespace tandem::grpc_front
