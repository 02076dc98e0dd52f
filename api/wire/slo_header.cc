#include "api/wire/slo_header.h"

#include <charconv>

#include "api/wire/infer_parameters.h"
#include "api/wire/json_text.h"

namespace tandem {

Result<std::chrono::microseconds> ParseSloHeader(std::string_view text) {
  double milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Invalid("header x-slo-ms '{}' is not a number of milliseconds", Excerpt(text));
  }
  // One rule for what an SLO may be, wherever it is written.
  InferRequest request;
  if (!ApplyRequestParameter("slo_ms", milliseconds, FrontEnd::kGrpc, request) || !request.slo) {
    return Invalid("header x-slo-ms '{}' must be a number of milliseconds above 0, at most a day", Excerpt(text));
  }
  return *request.slo;
}

}  // namespace tandem
