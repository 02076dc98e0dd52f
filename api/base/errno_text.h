#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace tandem {

// What the last system call of this thread says of its failure.
[[nodiscard]] inline std::string ErrnoText() {
  return std::error_code(errno, std::generic_category()).message();
}

}  // namespace tandem
