#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/limits.h"
#include "server/http/line_reader.h"
#include "server/http/request.h"

namespace tandem::http {

// How the body of a request is delimited.
struct Framing {
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool expect_continue = false;

  [[nodiscard]] bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// One header or trailer line, checked; views into the line.
struct FieldLine {
  std::string_view name, value;
};
[[nodiscard]] std::expected<FieldLine, ParseError> ParseFieldLine(std::string_view line);

// Reads a request line and header fields by RFC 9112, with nothing forgiven but one empty line ahead. One per request;
// used by RequestParser only.
class HeadReader {
 public:
  explicit HeadReader(const Limits& limits);

  // Takes bytes from `in` (counted by `used`) until the head is complete (true) or `in` is empty (false).
  [[nodiscard]] std::expected<bool, ParseError> Feed(std::string_view in, std::size_t& used);

  // Both only when complete.
  [[nodiscard]] const Framing& framing() const { return framing_; }
  [[nodiscard]] RequestHead Take() { return std::move(head_); }

 private:
  using Outcome = std::expected<void, ParseError>;

  [[nodiscard]] ParseError TooLong() const;
  [[nodiscard]] Outcome OnRequestLine(std::string_view line);
  [[nodiscard]] Outcome OnTarget(std::string_view target);
  [[nodiscard]] Outcome OnField(std::string_view line);
  [[nodiscard]] Outcome OnEnd();
  [[nodiscard]] Outcome CheckOnlyOnce() const;
  [[nodiscard]] Outcome CheckHost() const;
  [[nodiscard]] Outcome ReadFraming();
  [[nodiscard]] Outcome ReadConnectionAndExpect();
  [[nodiscard]] RequestHead::Place PlaceOf(std::string_view part) const;

  const Limits& limits_;  // Owned by the server's options.
  LineReader lines_;
  RequestHead head_;
  Framing framing_;
  std::size_t line_begin_ = 0;
  std::size_t budget_;
  bool in_fields_ = false;
  bool skipped_empty_line_ = false;
};

}  // namespace tandem::http
