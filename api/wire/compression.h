#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/base/buffer.h"
#include "api/base/result.h"
#include "api/wire/byte_budget.h"

namespace tandem {

// The content codings we speak: "gzip" and "deflate".
[[nodiscard]] bool IsKnownEncoding(std::string_view encoding);

// Unpacks a request body. "deflate" takes zlib and, as many clients send it, raw deflate. The result never exceeds
// `max_output` bytes (else kTooLarge), and memory grows only with what has been unpacked. Input that is corrupt, cut
// off or followed by anything is kInvalidArgument. The owner has 64 readable bytes after the view (the slack that
// DecodeRestInfer can use). Counts in `budget`, if there is one; kUnavailable when it has no room.
[[nodiscard]] Result<Bytes> Inflate(std::span<const std::byte> packed, std::string_view encoding,
                                    std::size_t max_output, const std::shared_ptr<ByteBudget>& budget = nullptr);

// Packs the concatenation of `parts`, quickly rather than tightly.
[[nodiscard]] Result<std::string> Deflate(std::span<const std::span<const std::byte>> parts, std::string_view encoding);

}  // namespace tandem
