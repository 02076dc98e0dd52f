#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "server/grpc/front_end_parts.h"

namespace google::protobuf {
class Message;
}

namespace tandem::grpc_front {

// Reads a message with tensors or files of at most `max_bytes`, and frees `bytes`. Its structure is checked, and the
// memory that it will hold is leased, before it is parsed.
[[nodiscard]] Result<ByteBudget::Lease> TakeLargeMessage(ByteBudget& budget, grpc::ByteBuffer& bytes,
                                                         std::size_t max_bytes, google::protobuf::Message& message);

}  // namespace tandem::grpc_front
