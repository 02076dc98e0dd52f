#pragma once

#include <format>
#include <string>

#include <CLI/CLI.hpp>

namespace tandem {

// As CLI::Range, which lets "nan" through and words its ends oddly.
[[nodiscard]] inline CLI::Validator Between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return std::format("'{}' is not a number from {} to {}", text, least, most);
      },
      std::format("[{} - {}]", least, most));
}

}  // namespace tandem
