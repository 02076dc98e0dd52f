#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/base/buffer.h"

namespace tandem::loadgen {

// A request as it goes onto the wire: the head (and whatever of the body is small), then the parts, which are written
// from where they lie. Prepared once, sent many times.
struct HttpRequest {
  std::string head;
  std::vector<Bytes> parts;
  bool keep_body = false;  // Hand the body of the answer to the caller.

  [[nodiscard]] std::size_t size() const {
    std::size_t bytes = head.size();
    for (const Bytes& part : parts) bytes += part.size();
    return bytes;
  }
};

}  // namespace tandem::loadgen
