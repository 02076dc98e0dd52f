#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/base/buffer.h"
#include "api/base/infer_request.h"
#include "api/base/result.h"

namespace tandem {

// The answer to POST …/infer: the JSON, then the parts in order. With parts, the length of the JSON goes into the
// header Inference-Header-Content-Length and the content type is application/octet-stream.
struct EncodedInfer {
  std::string json;
  std::vector<Bytes> parts;  // Share the tensors' owners; one per output in binary form.
  bool has_binary = false;
};

// `requested` and `binary_output` are those of the InferRequest; `requested` is empty or runs parallel to
// response.outputs. An output placed in shared memory is described without its data.
//
// Floats are written as the shortest text that reads back as the same value; NaN, Infinity and -Infinity as those
// tokens, which Python's json and RapidJSON read. FP16, BF16, and BYTES that are not UTF-8, have no JSON form:
// kInvalidArgument, telling the caller to ask for binary data.
[[nodiscard]] Result<EncodedInfer> EncodeRestInfer(const InferResponse& response,
                                                   std::span<const RequestedOutput> requested, bool binary_output);

}  // namespace tandem
