#pragma once

#include <cstddef>

#include "api/base/result.h"

namespace google::protobuf {
class Descriptor;
namespace io {
class ZeroCopyInputStream;
}
}  // namespace google::protobuf

namespace tandem {

// How much structure a message may have. An empty element takes two bytes on the wire and some two hundred once parsed.
struct StructureLimits {
  std::size_t max_elements = 0;        // Of a repeated field of messages, or of strings at the top.
  std::size_t max_map_entries = 0;     // Of all maps together.
  std::size_t max_unknown_fields = 0;  // Of the whole message.
  std::size_t max_held_bytes = 0;      // That the message may take once parsed.
};

// Looks through a serialized message of `type` without parsing it or allocating anything, and stops at the first field
// that is beyond a limit: kInvalidArgument, naming it. Returns about how many bytes the message will hold once parsed.
// Strings and numbers of fixed size are passed over unseen; varints are counted. What passes may still not be a valid
// message. Thread-safe.
[[nodiscard]] Result<std::size_t> CheckStructure(google::protobuf::io::ZeroCopyInputStream& bytes, std::size_t size,
                                                 const google::protobuf::Descriptor& type,
                                                 const StructureLimits& limits);

}  // namespace tandem
