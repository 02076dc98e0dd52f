#pragma once

#include <cstddef>
#include <string>

#include "api/base/data_type.h"

namespace tandem::training {

// Whether elements may be taken for those of another type without a loss that anybody would mind: numbers as floats,
// whole numbers as whole numbers. BYTES never.
[[nodiscard]] bool CanConvert(DataType from, DataType to);

// Converts `count` elements; CanConvert holds. Returns the place of the first one that is not finite, or that the other
// type cannot hold, or `count` if there is none. Neither side needs to be aligned.
[[nodiscard]] std::size_t ConvertElements(DataType from, const std::byte* in, DataType to, std::byte* out,
                                          std::size_t count);

// The element at `in`, for messages.
[[nodiscard]] std::string ElementText(DataType type, const std::byte* in);

[[nodiscard]] bool IsFloat(DataType type);

}  // namespace tandem::training
