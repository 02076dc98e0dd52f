#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/buffer.h"
#include "api/base/clock.h"
#include "api/wire/byte_budget.h"

namespace tandem::http {

// kOther: one that no resource of ours knows; RequestHead::method_name() tells.
enum class Method : std::uint8_t { kGet, kPost, kHead, kPut, kDelete, kOptions, kPatch, kOther };

// Empty for kOther.
[[nodiscard]] std::string_view MethodName(Method method);
[[nodiscard]] Method ParseMethod(std::string_view name);

// A request's line and header fields, made by HeadReader. Holds the text it came in; the views it gives live as long as
// the head stays where it is.
class RequestHead {
 public:
  [[nodiscard]] Method method() const { return method_; }
  // Exactly as sent.
  [[nodiscard]] std::string_view method_name() const { return View(method_name_); }
  // The path part of the target, still percent-encoded; "*" for OPTIONS *.
  [[nodiscard]] std::string_view path() const { return View(path_); }
  // What follows the path and its '?', as it was sent; empty when there is none.
  [[nodiscard]] std::string_view query() const { return View(query_); }
  // 0 or 1, as in HTTP/1.x.
  [[nodiscard]] int minor_version() const { return minor_version_; }
  // Whether the client wants the connection to stay open.
  [[nodiscard]] bool keep_alive() const { return keep_alive_; }

  // The value of the first field of that (lower-case) name; empty when there is none.
  [[nodiscard]] std::string_view Header(std::string_view name) const;
  [[nodiscard]] bool HasHeader(std::string_view name) const;

  [[nodiscard]] std::size_t header_count() const { return fields_.size(); }
  // In the order sent; names are lower-case.
  [[nodiscard]] std::string_view HeaderName(std::size_t i) const { return View(fields_[i].name); }
  [[nodiscard]] std::string_view HeaderValue(std::size_t i) const { return View(fields_[i].value); }

 private:
  friend class HeadReader;

  // A place in text_: views would dangle when the head is moved.
  struct Place {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  struct Field {
    Place name, value;
  };
  [[nodiscard]] std::string_view View(Place place) const {
    return std::string_view(text_).substr(place.begin, place.size);
  }

  std::string text_;
  std::vector<Field> fields_;
  Place method_name_, path_, query_;
  Method method_ = Method::kGet;
  int minor_version_ = 1;
  bool keep_alive_ = true;
};

// A complete request, as a handler sees it.
struct Request {
  RequestHead head;
  Bytes body;             // With kBodySlack readable bytes behind it.
  MonotonicTime arrival;  // When its first byte was read.
  // What the body counts in, and what is unpacked from it shall; null: no bound. Shared because bodies outlive the
  // server.
  std::shared_ptr<ByteBudget> budget;
};

}  // namespace tandem::http
