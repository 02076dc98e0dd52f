#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace tandem {

// Every failure in tandem is one of these. Each front end maps them once: HTTP in server/http, gRPC in server/grpc.
enum class ErrorCode {
  kInvalidArgument,   // The caller's mistake; repeating the call cannot help.
  kNotFound,          // No such model, version, job or path.
  kConflict,          // The state of the thing forbids the call now.
  kTooLarge,          // Beyond a configured limit.
  kUnauthenticated,   // No valid token.
  kUnavailable,       // Queue full, draining, model not ready, deadline cannot be met: try again later.
  kCancelled,         // The caller has gone.
  kDeadlineExceeded,  // The request's deadline passed before it was computed.
  kUnsupported,       // A part that this build or library lacks.
  kInternal,          // Our own failure.
};

[[nodiscard]] constexpr std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kNotFound: return "not_found";
    case ErrorCode::kConflict: return "conflict";
    case ErrorCode::kTooLarge: return "too_large";
    case ErrorCode::kUnauthenticated: return "unauthenticated";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kCancelled: return "cancelled";
    case ErrorCode::kDeadlineExceeded: return "deadline_exceeded";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kInternal: return "internal";
  }
  return "internal";
}

// What went wrong, in words for the person who made the call: names the field and the value.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

}  // namespace tandem
