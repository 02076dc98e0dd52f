#pragma once

#include <charconv>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "api/base/result.h"
#include "api/wire/json_text.h"
#include "server/rest/router.h"

namespace tandem::rest {

using Query = std::map<std::string, std::string>;

// The query of a call that knows these parameters and no others.
[[nodiscard]] Result<Query> QueryOf(const Call& call, std::initializer_list<std::string_view> known);

template <typename Number>
[[nodiscard]] Result<Number> ParseNumber(const std::string& text, const char* what, Number least, Number most) {
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || !(number >= least && number <= most)) {
    return Invalid("{} is '{}'; it must be a {}number from {} to {}", what, Excerpt(text),
                   std::is_integral_v<Number> ? "whole " : "", least, most);
  }
  return number;
}

}  // namespace tandem::rest
