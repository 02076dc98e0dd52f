#pragma once

#include <cstdint>

namespace tandem::training {

// Memory that this process holds and that no file stands behind; 0 where that cannot be told.
[[nodiscard]] std::uint64_t AnonymousBytes();

}  // namespace tandem::training
