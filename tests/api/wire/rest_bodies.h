#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/base/infer_request.h"
#include "api/wire/rest_infer_decode.h"

namespace tandem {

// A copy on the heap of exactly the size of the text, so that a sanitizer sees any read past its end.
inline Bytes ExactBody(std::string_view text) {
  AlignedBuffer buffer(text.size());
  if (!text.empty()) std::memcpy(buffer.data(), text.data(), text.size());
  return Bytes::Own(std::move(buffer));
}

inline Result<InferRequest> DecodeJson(std::string_view json) {
  return DecodeRestInfer(ExactBody(json), std::nullopt);
}

inline Result<InferRequest> DecodeBinary(std::string_view json, std::string_view binary) {
  return DecodeRestInfer(ExactBody(std::string(json) + std::string(binary)), json.size());
}

// A request with one input 'x' whose data is JSON.
inline std::string OneInput(std::string_view type, std::string_view shape, std::string_view data) {
  return Format(R"({{"inputs":[{{"name":"x","shape":{},"datatype":"{}","data":{}}}]}})", shape, type, data);
}

// The message of a request that must be refused as the client's mistake; empty when it was not.
inline std::string RefusalOf(const Result<InferRequest>& result) {
  if (result || result.error().code != ErrorCode::kInvalidArgument) return "";
  return result.error().message;
}

// The elements of the first input.
template <typename T>
std::vector<T> ElementsOf(const Result<InferRequest>& result) {
  if (!result) return {};
  const auto view = result->inputs.at(0).tensor.data.view;
  std::vector<T> elements(view.size() / sizeof(T));
  if (!view.empty()) std::memcpy(elements.data(), view.data(), view.size());
  return elements;
}

inline std::vector<std::string> StringsOf(const Result<InferRequest>& result) {
  std::vector<std::string> strings;
  if (!result) return strings;
  for (const auto element : BytesElements(result->inputs.at(0).tensor.data.view)) strings.emplace_back(element);
  return strings;
}

}  // namespace tandem
