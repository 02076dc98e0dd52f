#include "server/grpc/raw_message.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>
#include <grpc/slice.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "api/base/buffer.h"
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

// Above this an answer is allocated here, where failure is an error: in gRPC it ends the process.
constexpr std::size_t kLargeAnswer = std::size_t{64} << 10;

std::unexpected<Error> NotValid(const google::protobuf::MessageLite& message) {
  return Invalid("the request is not a valid {} message", message.GetTypeName());
}

grpc::Slice MakeSlice(std::size_t size) {
  if (size <= kLargeAnswer) return {grpc_slice_malloc(size), grpc::Slice::STEAL_REF};
  auto memory = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  std::uint8_t* const data = memory.get();
  grpc::Slice slice(data, size, [](void* bytes) { delete[] static_cast<std::uint8_t*>(bytes); });
  (void)memory.release();
  return slice;
}

// The bytes in one piece, copied only when they are not.
Result<Bytes> Join(const grpc::ByteBuffer& bytes) {
  auto slices = std::make_shared<std::vector<grpc::Slice>>();
  if (!bytes.Dump(slices.get()).ok()) return Fail(ErrorCode::kInternal, "the message could not be read");
  if (slices->size() == 1) {
    const grpc::Slice& slice = slices->front();
    return Bytes{.view = std::as_bytes(std::span(slice.begin(), slice.size())), .owner = slices};
  }
  AlignedBuffer joined(bytes.Length());
  std::byte* out = joined.data();
  for (const grpc::Slice& slice : *slices) {
    out = std::ranges::copy(std::as_bytes(std::span(slice.begin(), slice.size())), out).out;
  }
  return Bytes::Own(std::move(joined));
}

Status ParsePacked(const grpc::ByteBuffer& bytes, std::string_view encoding, std::size_t max_bytes,
                   google::protobuf::MessageLite& message, const BeforeParsing& check) {
  if (!IsKnownEncoding(encoding)) return Fail(ErrorCode::kUnsupported, "the message's compression is not supported");
  TANDEM_ASSIGN(const Bytes packed, Join(bytes));
  TANDEM_ASSIGN(const Bytes plain, Inflate(packed.view, encoding, max_bytes));
  if (plain.size() > std::numeric_limits<int>::max()) return NotValid(message);
  const int size = static_cast<int>(plain.size());
  if (check) {
    google::protobuf::io::ArrayInputStream stream(plain.view.data(), size);
    TANDEM_TRY(check(stream, plain.size()));
  }
  if (!message.ParseFromArray(plain.view.data(), size)) return NotValid(message);
  return {};
}

Status ParsePlain(grpc::ByteBuffer& bytes, std::size_t max_bytes, google::protobuf::MessageLite& message,
                  const BeforeParsing& check) {
  if (bytes.Length() > max_bytes) {
    return Fail(ErrorCode::kTooLarge, "the message has {} bytes; {} may have at most {}", bytes.Length(),
                message.GetTypeName(), max_bytes);
  }
  if (check) {
    Reader reader(bytes);
    TANDEM_TRY(check(reader, bytes.Length()));
  }
  Reader reader(bytes);
  if (!message.ParseFromZeroCopyStream(&reader)) return NotValid(message);
  return {};
}

}  // namespace

grpc_compression_algorithm CompressionOf(grpc::ByteBuffer& bytes) {
  return bytes.Valid() ? Reader(bytes).compression() : GRPC_COMPRESS_NONE;
}

Status TakeMessage(grpc::ByteBuffer& bytes, std::size_t max_bytes, google::protobuf::MessageLite& message,
                   const BeforeParsing& check) {
  if (!bytes.Valid()) return Invalid("the call carries no {} message", message.GetTypeName());
  const grpc_compression_algorithm compression = CompressionOf(bytes);
  const Status parsed = compression != GRPC_COMPRESS_NONE
                            ? ParsePacked(bytes, EncodingName(compression), max_bytes, message, check)
                            : ParsePlain(bytes, max_bytes, message, check);
  bytes.Clear();
  return parsed;
}

Status PackMessage(const google::protobuf::MessageLite& message, grpc::ByteBuffer& bytes) {
  const std::size_t size = message.ByteSizeLong();
  if (size > std::numeric_limits<int>::max()) {
    return Fail(ErrorCode::kTooLarge, "the answer has {} bytes; a gRPC message holds at most 2 GiB", size);
  }
  // One slice, written in place.
  grpc::Slice slice = MakeSlice(size);
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  grpc::ByteBuffer(&slice, 1).Swap(&bytes);
  return {};
}

}  // namespace tandem::grpc_front
