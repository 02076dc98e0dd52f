#include "runtimes/onnx/ort_status.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "api/base/format.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

constexpr std::size_t kMessageLimit = 400;

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// ONNX Runtime's exceptions begin with "./path/file.cc:12 function(…) condition was false. " and may end with a
// stack trace: of no use to the person who sent the request.
std::string WithoutSourceLocation(std::string text) {
  text.resize(std::min(text.size(), text.find("\nStacktrace")));
  for (const std::string_view suffix : {".cc:", ".h:"}) {
    const std::size_t at = text.find(suffix);
    if (at == std::string::npos) continue;
    std::size_t begin = at;
    while (begin > 0 && text[begin - 1] != ':' && !std::isspace(static_cast<unsigned char>(text[begin - 1]))) --begin;
    if (text[begin] != '/' && text[begin] != '.') continue;
    constexpr std::string_view kCondition = " was false.";
    const std::size_t condition = text.find(kCondition, at);
    std::size_t end = condition == std::string::npos ? text.find(' ', at) : condition + kCondition.size();
    end = std::min(end, text.size());
    while (end < text.size() && text[end] == ' ') ++end;
    text.erase(begin, end - begin);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  return text;
}

bool IsOutOfMemory(std::string_view message) {
  static constexpr std::array<std::string_view, 6> kSigns = {
      "bad_alloc", "Failed to allocate memory", "Available memory of", "out of memory", "Integer overflow", "SafeInt"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return Contains(message, sign); });
}

}  // namespace

std::optional<OrtFailure> TakeFailure(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return std::nullopt;
  const OrtPtr<OrtStatus> owner(status, {api.ReleaseStatus});
  return OrtFailure{api.GetErrorCode(status),
                    Readable(WithoutSourceLocation(api.GetErrorMessage(status)), kMessageLimit)};
}

Status CheckOrt(const OrtApi& api, OrtStatus* status, std::string_view what) {
  if (const auto failure = TakeFailure(api, status)) {
    return Fail(ErrorCode::kInternal, "ONNX Runtime failed at the {}: {}", what, failure->message);
  }
  return {};
}

Error LoadError(const OrtFailure& failure, std::string_view file) {
  ErrorCode code = ErrorCode::kInvalidArgument;
  if (failure.code == ORT_NO_SUCHFILE) code = ErrorCode::kNotFound;
  if (failure.code == ORT_NOT_IMPLEMENTED) code = ErrorCode::kUnsupported;
  std::string_view hint;
  if (IsOutOfMemory(failure.message)) {
    code = ErrorCode::kTooLarge;
    hint = "it needs more memory than there is: ";
  }
  return {code, Format("'{}' could not be loaded: {}{}", file, hint, failure.message)};
}

Error RunError(const OrtFailure& failure, std::string_view model) {
  ErrorCode code = ErrorCode::kInternal;
  if (failure.code == ORT_INVALID_ARGUMENT ||
      Contains(failure.message, "Non-zero status code returned while running")) {
    code = ErrorCode::kInvalidArgument;
  }
  // Not kUnavailable: all budgets together leave the arena its memory (server/lifecycle/memory_budgets.h), so requests
  // cannot take it from a run. With more than one worker another run may have; a run is many allocations, and the one
  // that fails does not say whether they would have fitted alone.
  if (IsOutOfMemory(failure.message)) code = ErrorCode::kTooLarge;
  return {code, Format("model '{}' could not compute the given inputs: {}", model, failure.message)};
}

bool IsOutputShapeMismatch(const OrtFailure& failure) {
  return Contains(failure.message, "shape verification failed");
}

}  // namespace tandem
