#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/http/limits.h"

namespace tandem::http {

// Cuts lines that end in CRLF out of a byte stream, byte for byte the same however the stream is split. A bare CR, a
// bare LF and any control character but HTAB end it with an error. Used for the head, the trailers; no I/O.
class LineReader {
 public:
  enum class Step { kMore, kLine, kTooLong, kBareCr, kBareLf, kControl };

  // Appends to `line` what `in` holds of the current line, without its CRLF. `used` counts the bytes taken from `in`;
  // `budget` falls with every byte, and kTooLong says that it did not suffice.
  Step Feed(std::string_view in, std::size_t& used, std::size_t& budget, std::string& line);

 private:
  bool after_cr_ = false;
};

// The 400 for a step that is none of kMore, kLine and kTooLong.
[[nodiscard]] ParseError LineError(LineReader::Step step);

}  // namespace tandem::http
