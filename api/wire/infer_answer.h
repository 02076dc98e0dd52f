#pragma once

#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"

namespace tandem {

// The outputs of an answer to an inference, as a client reads them. An answer that is none is kInvalidArgument. Data
// that the answer holds in binary form are views into `body` without an owner: it must outlive them. Thread-safe.

// Of POST …/infer: JSON, and what follows it in binary form. Where the JSON ends is found in the text itself.
[[nodiscard]] Result<std::vector<Tensor>> DecodeRestAnswer(std::string_view body);

// Of ModelInfer: a serialised ModelInferResponse, with raw or typed contents. All data are copies.
[[nodiscard]] Result<std::vector<Tensor>> DecodeGrpcAnswer(std::string_view body);

}  // namespace tandem
