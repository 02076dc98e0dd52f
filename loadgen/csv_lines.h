#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::loadgen {

struct CsvLimits {
  std::uint64_t bytes = 1ULL << 30;  // Of the whole file.
  std::size_t line = 4096;
};

// Takes one line, without its end. Its errors are handed on with the file and the number of the line in front.
using LineHandler = std::function<Status(std::string_view line)>;

// Cuts text that comes in pieces of any size into lines, which end with LF or CRLF; the last one may lack it. Used by
// one thread.
class LineCutter {
 public:
  // `name` is for messages.
  LineCutter(std::string name, const CsvLimits& limits, LineHandler handler);

  [[nodiscard]] Status Feed(std::string_view piece);
  [[nodiscard]] Status End();

 private:
  [[nodiscard]] Status Hand(std::string_view line);
  [[nodiscard]] std::unexpected<Error> At(Error error) const;

  const std::string name_;
  const CsvLimits limits_;
  const LineHandler handler_;
  std::uint64_t bytes_ = 0;
  std::uint64_t line_ = 1;  // The number of the line that comes next.
  std::string partial_;     // A line that has not ended yet.
};

// The lines of a text; `name` is for messages.
[[nodiscard]] Status ReadLines(std::string_view text, std::string_view name, const CsvLimits& limits,
                               const LineHandler& handler);
// The lines of a file, which is read in pieces and never held whole.
[[nodiscard]] Status ReadFileLines(const std::filesystem::path& file, const CsvLimits& limits,
                                   const LineHandler& handler);

// The fields between the commas, in place of what the vector holds. There are no quotes.
void SplitFields(std::string_view line, std::vector<std::string_view>& fields);

}  // namespace tandem::loadgen
