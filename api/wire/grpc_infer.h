#pragma once

#include <memory>
#include <span>

#include "api/base/infer_request.h"
#include "api/base/result.h"
#include "api/wire/proto/inference.pb.h"

namespace tandem {

// Decodes a ModelInfer or ModelStreamInfer request. Inputs in raw_input_contents are views into the message, which they
// keep alive (hence shared); typed contents are converted. `arrival`, `deadline` and `cancel` are left to the caller.
// All errors are kInvalidArgument. Thread-safe.
[[nodiscard]] Result<InferRequest> DecodeGrpcInfer(std::shared_ptr<const inference::ModelInferRequest> message);

// Fills an empty `message`, data always in raw_output_contents. `requested` is InferRequest::outputs: empty or parallel
// to response.outputs. An output placed in shared memory keeps its place with an empty entry.
[[nodiscard]] Status EncodeGrpcInfer(const InferResponse& response, std::span<const RequestedOutput> requested,
                                     inference::ModelInferResponse& message);

}  // namespace tandem
