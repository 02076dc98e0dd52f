#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/base/buffer.h"
#include "api/base/infer_request.h"
#include "api/base/result.h"

namespace tandem {

// Bytes that the JSON reader may touch, but never uses, past the end of the JSON.
inline constexpr std::size_t kJsonSlack = 64;

// Decodes the body of POST …/infer: JSON, then the bytes of the binary inputs in order. `json_length` is the header
// Inference-Header-Content-Length; without it the whole body is JSON. Binary inputs are views into the body and share
// its owner; `model`, `version`, `arrival`, `deadline` and `cancel` are left to the caller. All errors are
// kInvalidArgument and name the member at fault. Thread-safe.
//
// `slack` is how many bytes after the end of `body` may be read safely. When there are kJsonSlack of them after the
// JSON (binary data counts), the JSON is read where it is; otherwise it is copied first.
[[nodiscard]] Result<InferRequest> DecodeRestInfer(const Bytes& body, std::optional<std::uint64_t> json_length,
                                                   std::size_t slack = 0);

}  // namespace tandem
