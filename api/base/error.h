#pragma once

#include <chrono>
#include <string>

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

// What went wrong, in words for the person who made the call: names the field and the value.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::chrono::milliseconds retry_after{0};  // When another try would probably succeed; 0: that is not known.

  friend bool operator==(const Error&, const Error&) = default;
};

}  // namespace tandem
