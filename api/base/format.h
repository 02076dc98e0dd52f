#pragma once

#include <format>
#include <string>
#include <string_view>

namespace tandem {

// What Format() and AppendFormat() are made of; thread-safe.
[[nodiscard]] std::string FormatArguments(std::string_view text, std::format_args arguments);
void AppendArguments(std::string& out, std::string_view text, std::format_args arguments);

// As std::format(), checked when compiled. The standard library's own compiles all of its formatting into every file
// that calls it, which is most of what such a file takes to compile; here that is done once.
template <typename... Args>
[[nodiscard]] std::string Format(std::format_string<Args...> text, Args&&... args) {
  return FormatArguments(text.get(), std::make_format_args(args...));
}

// The same, added to the end of `out`.
template <typename... Args>
void AppendFormat(std::string& out, std::format_string<Args...> text, Args&&... args) {
  AppendArguments(out, text.get(), std::make_format_args(args...));
}

}  // namespace tandem
