#pragma once

#include <cstddef>
#include <functional>

#include <grpc/impl/codegen/compression_types.h>
#include <grpcpp/support/byte_buffer.h>

#include "api/base/result.h"

namespace google::protobuf {
class MessageLite;
namespace io {
class ZeroCopyInputStream;
}
}  // namespace google::protobuf

// Messages to and from the bytes that gRPC carries. The services take raw bytes and parse them here, because gRPC 1.51
// answers a request that is not a valid message with UNIMPLEMENTED, and unpacks a compressed one without any limit.
namespace tandem::grpc_front {

// A request that holds names and settings, but no tensors and no files: all but those of three calls.
inline constexpr std::size_t kMaxControlMessageBytes = std::size_t{64} << 10;

// How the sender packed it; GRPC_COMPRESS_NONE for plain bytes.
[[nodiscard]] grpc_compression_algorithm CompressionOf(grpc::ByteBuffer& bytes);

// Looks at a message's bytes, unpacked, before they are parsed.
using BeforeParsing = std::function<Status(google::protobuf::io::ZeroCopyInputStream& plain, std::size_t size)>;

// Unpacks, asks `check` if there is one, parses and then frees `bytes`. kTooLarge above `max_bytes`, packed or not;
// kInvalidArgument when it is not a message.
[[nodiscard]] Status TakeMessage(grpc::ByteBuffer& bytes, std::size_t max_bytes, google::protobuf::MessageLite& message,
                                 const BeforeParsing& check = {});

// kTooLarge above 2 GiB, which is all that a message can have. May throw std::bad_alloc.
[[nodiscard]] Status PackMessage(const google::protobuf::MessageLite& message, grpc::ByteBuffer& bytes);

}  // namespace tandem::grpc_front
