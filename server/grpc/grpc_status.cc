#include "server/grpc/grpc_status.h"

#include <string>

namespace tandem::grpc_front {
namespace {

// Clients refuse trailers above 8 KiB by default, and percent-encoding can triple the text.
constexpr std::size_t kMaxMessage = 2048;

std::string Cut(const std::string& text) {
  if (text.size() <= kMaxMessage) return text;
  std::size_t end = kMaxMessage;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

}  // namespace

grpc::StatusCode ToGrpcCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kNotFound: return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kConflict: return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::kTooLarge: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kUnauthenticated: return grpc::StatusCode::UNAUTHENTICATED;
    case ErrorCode::kUnavailable: return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::kCancelled: return grpc::StatusCode::CANCELLED;
    case ErrorCode::kDeadlineExceeded: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::kUnsupported: return grpc::StatusCode::UNIMPLEMENTED;
    case ErrorCode::kInternal: return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

grpc::Status ToGrpcStatus(const Error& error) {
  return {ToGrpcCode(error.code), Cut(error.message)};
}

grpc::Status ToGrpcStatus(const Status& status) {
  return status ? grpc::Status::OK : ToGrpcStatus(status.error());
}

grpc::Status ShuttingDown() {
  return {grpc::StatusCode::UNAVAILABLE, "the server is shutting down"};
}

}  // namespace tandem::grpc_front
