#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "api/base/buffer.h"
#include "api/base/result.h"
#include "api/wire/infer_parameters.h"

namespace tandem {

using VisitParameter = std::function<Status(std::string_view key, const ParameterValue& value)>;

// Reads the body of a repository call, `{"parameters": {…}}` or nothing, and calls `visit` for each parameter that is
// not null. A file in it costs no copy but the parser's own; the text that `visit` is shown lives for that call only.
// Errors are kInvalidArgument and name the member at fault, or those of `visit`. `slack` as in DecodeRestInfer.
// Thread-safe.
[[nodiscard]] Status ReadRepositoryCall(const Bytes& body, std::size_t slack, const VisitParameter& visit);

}  // namespace tandem
