#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

namespace tandem {

// The text with a few bytes or pieces changed, removed, doubled or cut; now and then a token that parsers care about.
inline std::string Mutate(std::string text, std::mt19937& random) {
  static constexpr std::string_view kTokens[] = {
      "[",        "]",   "{",   "}", ",", ":", "\"", "\\u", "NaN", "-", "0", "\xFF", " ", "true", "9223372036854775808",
      "\"data\"", "1e9", "null"};
  const auto up_to = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  for (std::size_t changes = 1 + up_to(3); changes > 0 && !text.empty(); --changes) {
    const std::size_t place = up_to(text.size() - 1);
    switch (up_to(4)) {
      case 0: text[place] = static_cast<char>(up_to(255)); break;
      case 1: text.erase(place, 1 + up_to(8)); break;
      case 2: text.insert(place, kTokens[up_to(std::size(kTokens) - 1)]); break;
      case 3: text.resize(place); break;
      default: text.insert(place, text.substr(up_to(text.size() - 1), up_to(40))); break;
    }
  }
  return text;
}

}  // namespace tandem
