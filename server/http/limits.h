#pragma once

#include <cstddef>
#include <string>

namespace tandem::http {

// How much of a stranger's request is read before it is refused.
struct Limits {
  std::size_t max_request_line = 16 * 1024;
  std::size_t max_header_bytes = 32 * 1024;  // All header fields together; trailers again.
  std::size_t max_headers = 100;
  std::size_t max_body = std::size_t{256} << 20;
};

// Why a request cannot be read. The connection answers with it and closes, since where the next request begins is
// no longer known.
struct ParseError {
  int status = 400;
  std::string message;

  friend bool operator==(const ParseError&, const ParseError&) = default;
};

}  // namespace tandem::http
