#include "server/http/line_reader.h"

#include <algorithm>
#include <array>

#include "server/http/text.h"

namespace tandem::http {
namespace {

constexpr std::array<bool, 256> kOrdinary = [] {
  std::array<bool, 256> table{};
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = i == '\t' || !IsControl(static_cast<char>(i));
  return table;
}();

}  // namespace

LineReader::Step LineReader::Feed(std::string_view in, std::size_t& used, std::size_t& budget, std::string& line) {
  while (used < in.size()) {
    if (budget == 0) return Step::kTooLong;
    const char c = in[used];
    if (after_cr_) {
      if (c != '\n') return Step::kBareCr;
      after_cr_ = false;
      ++used;
      --budget;
      return Step::kLine;
    }
    if (c == '\r') {
      after_cr_ = true;
      ++used;
      --budget;
      continue;
    }
    if (c == '\n') return Step::kBareLf;
    if (!kOrdinary[static_cast<unsigned char>(c)]) return Step::kControl;

    const std::string_view rest = in.substr(used, std::min(budget, in.size() - used));
    std::size_t run = 1;
    while (run < rest.size() && kOrdinary[static_cast<unsigned char>(rest[run])]) ++run;
    line += rest.substr(0, run);
    used += run;
    budget -= run;
  }
  return Step::kMore;
}

ParseError LineError(LineReader::Step step) {
  switch (step) {
    case LineReader::Step::kBareCr: return {400, "a line of the request has a CR that is not followed by LF"};
    case LineReader::Step::kBareLf: return {400, "a line of the request ends in LF without CR"};
    default: return {400, "the request's head has a control character"};
  }
}

}  // namespace tandem::http
