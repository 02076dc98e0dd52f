#include "server/grpc/raw_message.h"

#include <limits>
#include <span>
#include <string_view>

#include <google/protobuf/message_lite.h>
#include <grpc/slice.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "api/wire/compression.h"

namespace tandem::grpc_front {
namespace {

// Reads the bytes as they came, and says how they were packed, which grpc::ByteBuffer keeps to itself.
class Reader final : public grpc::ProtoBufferReader {
 public:
  explicit Reader(grpc::ByteBuffer& bytes) : ProtoBufferReader(&bytes) {}

  grpc_compression_algorithm compression() { return reader()->buffer_in->data.raw.compression; }
};

std::string_view EncodingName(grpc_compression_algorithm algorithm) {
  switch (algorithm) {
    case GRPC_COMPRESS_DEFLATE: return "deflate";
    case GRPC_COMPRESS_GZIP: return "gzip";
    default: return "";
  }
}

Status ParsePacked(const grpc::ByteBuffer& bytes, std::string_view encoding, std::size_t max_bytes,
                   google::protobuf::MessageLite& message) {
  if (!IsKnownEncoding(encoding)) return Fail(ErrorCode::kUnsupported, "the message's compression is not supported");
  grpc::Slice packed;
  if (!bytes.DumpToSingleSlice(&packed).ok()) return Fail(ErrorCode::kInternal, "the message could not be read");
  TANDEM_ASSIGN(const Bytes plain,
                Inflate(std::as_bytes(std::span(packed.begin(), packed.size())), encoding, max_bytes));
  if (plain.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(plain.view.data(), static_cast<int>(plain.size()))) {
    return Invalid("the request is not a valid {} message", message.GetTypeName());
  }
  return {};
}

}  // namespace

grpc_compression_algorithm CompressionOf(grpc::ByteBuffer& bytes) {
  return bytes.Valid() ? Reader(bytes).compression() : GRPC_COMPRESS_NONE;
}

Status TakeMessage(grpc::ByteBuffer& bytes, std::size_t max_bytes, google::protobuf::MessageLite& message) {
  if (!bytes.Valid()) return Invalid("the call carries no {} message", message.GetTypeName());
  Status parsed;
  const grpc_compression_algorithm compression = CompressionOf(bytes);
  if (compression != GRPC_COMPRESS_NONE) {
    parsed = ParsePacked(bytes, EncodingName(compression), max_bytes, message);
  } else {
    Reader reader(bytes);
    if (!message.ParseFromZeroCopyStream(&reader)) {
      parsed = Invalid("the request is not a valid {} message", message.GetTypeName());
    }
  }
  bytes.Clear();
  return parsed;
}

Status PackMessage(const google::protobuf::MessageLite& message, grpc::ByteBuffer& bytes) {
  const std::size_t size = message.ByteSizeLong();
  if (size > std::numeric_limits<int>::max()) {
    return Fail(ErrorCode::kTooLarge, "the answer has {} bytes; a gRPC message holds at most 2 GiB", size);
  }
  // One slice, written in place.
  grpc::Slice slice(grpc_slice_malloc(size), grpc::Slice::STEAL_REF);
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  grpc::ByteBuffer(&slice, 1).Swap(&bytes);
  return {};
}

}  // namespace tandem::grpc_front
