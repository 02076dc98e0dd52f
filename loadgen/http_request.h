#pragma once

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
};

}  // namespace tandem::loadgen
