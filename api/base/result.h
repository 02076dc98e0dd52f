#pragma once

#include <expected>
#include <format>
#include <string>
#include <utility>

#include "api/base/error.h"
#include "api/base/format.h"

namespace tandem {

// A value or the reason there is none. Functions that return it are marked [[nodiscard]].
template <typename T>
using Result = std::expected<T, Error>;

using Status = Result<void>;

// Fail(ErrorCode::kNotFound, "model '{}' is not loaded", name) converts to any Result<T>.
template <typename... Args>
[[nodiscard]] std::unexpected<Error> Fail(ErrorCode code, std::format_string<Args...> text, Args&&... args) {
  return std::unexpected(Error{code, Format(text, std::forward<Args>(args)...)});
}

template <typename... Args>
[[nodiscard]] std::unexpected<Error> Invalid(std::format_string<Args...> text, Args&&... args) {
  return Fail(ErrorCode::kInvalidArgument, text, std::forward<Args>(args)...);
}

}  // namespace tandem

// Hands an error to the caller: TANDEM_TRY(CheckName(name));
#define TANDEM_TRY(expression)                                  \
  do {                                                          \
    if (auto tandem_status = (expression); !tandem_status) {    \
      return std::unexpected(std::move(tandem_status).error()); \
    }                                                           \
  } while (false)

#define TANDEM_CONCAT_INNER(a, b) a##b
#define TANDEM_CONCAT(a, b) TANDEM_CONCAT_INNER(a, b)

// Names the value or hands the error to the caller: TANDEM_ASSIGN(auto config, ReadConfig(path));
#define TANDEM_ASSIGN(declaration, expression) \
  TANDEM_ASSIGN_INNER(TANDEM_CONCAT(tandem_result_, __LINE__), declaration, expression)
#define TANDEM_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                \
  if (!result) {                                             \
    return std::unexpected(std::move(result).error());       \
  }                                                          \
  declaration = std::move(*result)
