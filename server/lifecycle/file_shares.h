#pragma once

#include <cstddef>

namespace tandem {

// How many of the descriptors that this process may have each part may hold, so that a crowd at one cannot shut out the
// others.
struct FileShares {
  std::size_t http = 0;
  std::size_t grpc = 0;
  std::size_t metrics = 0;
  std::size_t regions = 0;
};

// Raises the limit on open files as far as it goes and shares what is free. Fewer than the `connections` asked for go
// to the log. Called once, at start.
[[nodiscard]] FileShares ShareFiles(std::size_t connections);

}  // namespace tandem
