#pragma once

#include <cstddef>

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/support/byte_buffer.h>

#include "api/base/result.h"

namespace google::protobuf {
class MessageLite;
}

// Messages to and from the bytes that gRPC carries. The services take raw bytes and parse them here, because gRPC 1.51
// answers a request that is not a valid message with UNIMPLEMENTED, and unpacks a compressed one without any limit.
namespace tandem::grpc_front {

// How the sender packed it; GRPC_COMPRESS_NONE for plain bytes.
[[nodiscard]] grpc_compression_algorithm CompressionOf(grpc::ByteBuffer& bytes);

// Parses and then frees `bytes`. kTooLarge above `max_bytes` once unpacked, kInvalidArgument when it is not a message.
[[nodiscard]] Status TakeMessage(grpc::ByteBuffer& bytes, std::size_t max_bytes,
                                 google::protobuf::MessageLite& message);

// kTooLarge above 2 GiB, which is all that a message can have.
[[nodiscard]] Status PackMessage(const google::protobuf::MessageLite& message, grpc::ByteBuffer& bytes);

}  // namespace tandem::grpc_front
