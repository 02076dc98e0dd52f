#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "api/base/buffer.h"
#include "api/base/infer_request.h"
#include "api/base/result.h"
#include "api/wire/byte_budget.h"

namespace tandem {

// Bytes that the JSON reader may touch, but never uses, past the end of the JSON.
inline constexpr std::size_t kJsonSlack = 64;

// Decodes the body of POST …/infer: JSON, then the bytes of the binary inputs in order. `json_length` is the header
// Inference-Header-Content-Length; without it the whole body is JSON. Binary inputs are views into the body and share
// its owner; `model`, `version`, `arrival`, `deadline` and `cancel` are left to the caller. An error is
// kInvalidArgument and names the member at fault, or kUnavailable where memory or `budget` has no room. Thread-safe.
//
// `slack` is how many bytes after the end of `body` may be read safely. When there are kJsonSlack of them after the
// JSON (binary data counts), the JSON is read where it is; otherwise it is copied first. Tensors that came as JSON
// count in `budget`, if there is one, for as long as they live.
[[nodiscard]] Result<InferRequest> DecodeRestInfer(const Bytes& body, std::optional<std::uint64_t> json_length,
                                                   std::size_t slack = 0,
                                                   const std::shared_ptr<ByteBudget>& budget = nullptr);

}  // namespace tandem
