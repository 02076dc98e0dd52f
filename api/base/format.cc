#include "api/base/format.h"

#include <iterator>

namespace tandem {

std::string FormatArguments(std::string_view text, std::format_args arguments) {
  return std::vformat(text, arguments);
}

void AppendArguments(std::string& out, std::string_view text, std::format_args arguments) {
  std::vformat_to(std::back_inserter(out), text, arguments);
}

}  // namespace tandem
