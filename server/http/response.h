#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/buffer.h"
#include "api/base/error.h"

namespace tandem::http {

// What a handler answers. The content is `body` and then `parts` (raw tensors, which are sent without being copied).
struct Response {
  int status = 200;
  std::string content_type = "application/json";  // Empty: no such header.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::vector<Bytes> parts;

  [[nodiscard]] std::size_t content_size() const;
};

// The only place where our errors become HTTP statuses.
[[nodiscard]] int HttpStatus(ErrorCode code);
[[nodiscard]] std::string_view ReasonPhrase(int status);

[[nodiscard]] Response JsonResponse(int status, std::string json);
// {"error": "<message>"}
[[nodiscard]] Response ErrorResponse(int status, std::string_view message);
// With how long to wait, if that is known: in whole seconds, as HTTP has it, and in milliseconds.
[[nodiscard]] Response ErrorResponse(const Error& error);

// How the connection sends a response.
struct Delivery {
  bool keep_alive = true;
  int minor_version = 1;   // Of the request.
  bool head_only = false;  // The request was HEAD.
  bool chunked = false;    // A stream: its length is not known. HTTP/1.0 gets it unframed, up to the close.
  std::string_view date;   // Empty: no such header.
};

// Whether content follows the head at all.
[[nodiscard]] bool HasContent(const Response& response, const Delivery& delivery);

// Appends the status line and header fields. Every 503 says when to retry and every 401 how to authenticate; control
// characters in the handler's fields become blanks, so that none can end a line.
void AppendHead(const Response& response, const Delivery& delivery, std::string& out);

// Answers up to this size are copied behind their head and sent as one piece.
inline constexpr std::size_t kCopyLimit = 16 * 1024;

// The head, and the content if there is to be any.
void AppendWhole(const Response& response, const Delivery& delivery, std::string& out);

}  // namespace tandem::http
