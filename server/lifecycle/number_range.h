#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "api/base/format.h"

namespace tandem {

// As CLI::Range, which lets "nan" through and words its ends oddly.
[[nodiscard]] inline CLI::Validator Between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return std::string();
        return Format("'{}' is not a number from {} to {}", text, least, most);
      },
      Format("[{} - {}]", least, most));
}

}  // namespace tandem
