#include "server/http/response.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "api/wire/json_text.h"
#include "server/http/text.h"

namespace tandem::http {
namespace {

void AppendNumber(std::size_t value, std::string& out) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

void AppendSafe(std::string_view text, std::string& out) {
  for (const char c : text) out += IsControl(c) ? ' ' : c;
}

void AppendField(std::string_view name, std::string_view value, std::string& out) {
  AppendSafe(name, out);
  out += ": ";
  AppendSafe(value, out);
  out += "\r\n";
}

bool HasField(const Response& response, std::string_view name) {
  return std::ranges::any_of(response.headers, [&](const auto& h) { return EqualsIgnoringCase(h.first, name); });
}

// 204 and 1xx end with their head.
bool StatusForbidsLength(int status) {
  return status == 204 || (status >= 100 && status < 200);
}

}  // namespace

std::size_t Response::content_size() const {
  std::size_t size = body.size();
  for (const Bytes& part : parts) size += part.size();
  return size;
}

int HttpStatus(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return 400;
    case ErrorCode::kNotFound: return 404;
    case ErrorCode::kConflict: return 409;
    case ErrorCode::kTooLarge: return 413;
    case ErrorCode::kUnauthenticated: return 401;
    case ErrorCode::kUnavailable: return 503;
    case ErrorCode::kCancelled: return 499;
    case ErrorCode::kDeadlineExceeded: return 503;
    case ErrorCode::kUnsupported: return 501;
    case ErrorCode::kInternal: return 500;
  }
  return 500;
}

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 499: return "Client Closed Request";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

Response JsonResponse(int status, std::string json) {
  Response response;
  response.status = status;
  response.body = std::move(json);
  return response;
}

Response ErrorResponse(int status, std::string_view message) {
  std::string json = "{\"error\":";
  AppendJsonString(message, json);
  json += '}';
  return JsonResponse(status, std::move(json));
}

Response ErrorResponse(const Error& error) {
  Response response = ErrorResponse(HttpStatus(error.code), error.message);
  if (error.retry_after.count() > 0) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(error.retry_after);
    response.headers.emplace_back("Retry-After", std::to_string(seconds.count()));
    response.headers.emplace_back("Tandem-Retry-After-Ms", std::to_string(error.retry_after.count()));
  }
  return response;
}

bool HasContent(const Response& response, const Delivery& delivery) {
  return !delivery.head_only && response.status != 304 && !StatusForbidsLength(response.status);
}

void AppendHead(const Response& response, const Delivery& delivery, std::string& out) {
  out += "HTTP/1.1 ";
  AppendNumber(static_cast<std::size_t>(std::clamp(response.status, 100, 999)), out);
  out += ' ';
  out += ReasonPhrase(response.status);
  out += "\r\n";
  if (!response.content_type.empty() && !StatusForbidsLength(response.status)) {
    AppendField("Content-Type", response.content_type, out);
  }
  for (const auto& [name, value] : response.headers) AppendField(name, value, out);
  if (response.status == 503 && !HasField(response, "retry-after")) out += "Retry-After: 1\r\n";
  if (response.status == 401 && !HasField(response, "www-authenticate")) out += "WWW-Authenticate: Bearer\r\n";
  if (delivery.chunked) {
    if (delivery.minor_version == 1) out += "Transfer-Encoding: chunked\r\n";
  } else if (!StatusForbidsLength(response.status)) {
    out += "Content-Length: ";
    AppendNumber(response.content_size(), out);
    out += "\r\n";
  }
  if (!delivery.keep_alive) {
    out += "Connection: close\r\n";
  } else if (delivery.minor_version == 0) {
    out += "Connection: keep-alive\r\n";
  }
  if (!delivery.date.empty()) AppendField("Date", delivery.date, out);
  out += "\r\n";
}

void AppendWhole(const Response& response, const Delivery& delivery, std::string& out) {
  AppendHead(response, delivery, out);
  if (!HasContent(response, delivery)) return;
  out += response.body;
  for (const Bytes& part : response.parts) {
    out.append(reinterpret_cast<const char*>(part.view.data()), part.size());
  }
}

}  // namespace tandem::http
