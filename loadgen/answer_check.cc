#include "loadgen/answer_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "api/base/format.h"
#include "api/base/half_float.h"
#include "api/wire/infer_answer.h"
#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

template <typename T>
T Element(const Tensor& tensor, std::size_t index) {
  T value;
  std::memcpy(&value, tensor.data.view.data() + index * sizeof(T), sizeof(T));
  return value;
}

// An element of a type that is a number.
double NumberAt(const Tensor& tensor, std::size_t index) {
  switch (tensor.type) {
    case DataType::kFp64: return Element<double>(tensor, index);
    case DataType::kFp32: return Element<float>(tensor, index);
    case DataType::kFp16: return FromFp16(Element<std::uint16_t>(tensor, index));
    case DataType::kBf16: return FromBf16(Element<std::uint16_t>(tensor, index));
    case DataType::kUint64: return static_cast<double>(Element<std::uint64_t>(tensor, index));
    case DataType::kInt64: return static_cast<double>(Element<std::int64_t>(tensor, index));
    case DataType::kUint32: return Element<std::uint32_t>(tensor, index);
    case DataType::kInt32: return Element<std::int32_t>(tensor, index);
    case DataType::kUint16: return Element<std::uint16_t>(tensor, index);
    case DataType::kInt16: return Element<std::int16_t>(tensor, index);
    case DataType::kInt8: return Element<std::int8_t>(tensor, index);
    default: return Element<std::uint8_t>(tensor, index);
  }
}

bool IsFloat(DataType type) {
  return type == DataType::kFp16 || type == DataType::kBf16 || type == DataType::kFp32 || type == DataType::kFp64;
}

bool Near(double expected, double actual, double tolerance) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  return expected == actual || std::abs(expected - actual) <= tolerance;
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.data.size() == b.data.size() &&
         (a.data.size() == 0 || std::memcmp(a.data.view.data(), b.data.view.data(), a.data.size()) == 0);
}

// Views of an answer that is about to go away.
void TakeData(std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) {
    AlignedBuffer copy(tensor.data.size());
    if (tensor.data.size() > 0) std::memcpy(copy.data(), tensor.data.view.data(), tensor.data.size());
    tensor.data = Bytes::Own(std::move(copy));
  }
}

}  // namespace

std::optional<std::string> Difference(const Tensor& expected, const Tensor& actual, double tolerance) {
  const std::string name = Format("output '{}'", Excerpt(expected.name));
  if (expected.type != actual.type) {
    return Format("{} is {}, expected {}", name, DataTypeName(actual.type), DataTypeName(expected.type));
  }
  if (expected.shape != actual.shape) {
    return Format("{} has shape {}, expected {}", name, ShapeText(actual.shape), ShapeText(expected.shape));
  }
  if (SameBytes(expected, actual)) return std::nullopt;
  if (expected.type == DataType::kBytes) return name + " holds other texts than expected";
  const std::size_t size = DataTypeSize(expected.type);
  const bool loose = tolerance > 0 && IsFloat(expected.type);
  for (std::size_t i = 0; i < expected.data.size() / size; ++i) {
    const bool same = std::memcmp(expected.data.view.data() + i * size, actual.data.view.data() + i * size, size) == 0;
    if (same || (loose && Near(NumberAt(expected, i), NumberAt(actual, i), tolerance))) continue;
    return Format("{}: element {} is {}, expected {}", name, i, NumberAt(actual, i), NumberAt(expected, i));
  }
  return std::nullopt;
}

AnswerCheck::AnswerCheck(Expectation expectation, AnswerForm form) : expectation_(std::move(expectation)), form_(form) {
  expectation_.every = std::max<std::uint32_t>(expectation_.every, 1);
}

std::optional<std::string> AnswerCheck::Mismatch(std::string body) {
  if (!right_.empty() && body == right_) return std::nullopt;
  auto outputs = form_ == AnswerForm::kGrpc ? DecodeGrpcAnswer(body) : DecodeRestAnswer(body);
  if (!outputs) return outputs.error().message;
  if (expectation_.outputs.empty()) {
    if (outputs->empty()) return "the answer has no outputs";
    TakeData(*outputs);
    expectation_.outputs = *std::move(outputs);
  } else {
    for (const Tensor& expected : expectation_.outputs) {
      const auto actual = std::ranges::find(*outputs, expected.name, &Tensor::name);
      if (actual == outputs->end()) return Format("output '{}' is not in the answer", Excerpt(expected.name));
      if (auto difference = Difference(expected, *actual, expectation_.tolerance)) return difference;
    }
  }
  right_ = std::move(body);
  return std::nullopt;
}

}  // namespace tandem::loadgen
