#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "server/http/body_buffer.h"
#include "server/http/limits.h"
#include "server/http/line_reader.h"

namespace tandem::http {

// Undoes the chunked transfer coding: sizes of plain hexadecimal digits, short extensions and well-formed trailers,
// both ignored; a bounded number of chunks for the bytes they bring. One per request; used by RequestParser only.
class ChunkReader {
 public:
  explicit ChunkReader(const Limits& limits) : limits_(limits), trailer_budget_(limits.max_header_bytes) {}

  // Takes bytes from `in` (counted by `used`) into `body` until the last chunk and its trailers are read (true) or `in`
  // is empty (false).
  [[nodiscard]] std::expected<bool, ParseError> Feed(std::string_view in, std::size_t& used, BodyBuffer& body);

 private:
  enum class State { kSize, kBlank, kExtension, kSizeLf, kData, kDataCr, kDataLf, kTrailers, kDone };
  using Outcome = std::expected<void, ParseError>;

  [[nodiscard]] Outcome OnSizeByte(char c);
  [[nodiscard]] Outcome OnFramingByte(char c, const BodyBuffer& body);
  [[nodiscard]] Outcome OnSize(const BodyBuffer& body);
  [[nodiscard]] Outcome TakeData(std::string_view in, std::size_t& used, BodyBuffer& body);
  [[nodiscard]] Outcome TakeTrailers(std::string_view in, std::size_t& used);

  const Limits& limits_;  // Owned by the server's options.
  State state_ = State::kSize;
  std::uint64_t chunk_left_ = 0;
  int digits_ = 0;
  std::size_t extension_bytes_ = 0;
  std::size_t chunks_ = 0;
  LineReader lines_;
  std::string trailer_;
  std::size_t trailer_budget_;
  std::size_t trailers_ = 0;
};

}  // namespace tandem::http
