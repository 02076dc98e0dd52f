#include "server/cli/tensor_text.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using testing::ElementsAre;

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

template <typename T>
Tensor Make(DataType type, const std::vector<T>& values) {
  AlignedBuffer buffer(values.size() * sizeof(T));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return {.name = "t",
          .type = type,
          .shape = {static_cast<std::int64_t>(values.size())},
          .data = Bytes::Own(std::move(buffer))};
}

Tensor Strings(const std::vector<std::string>& elements) {
  std::string wire;
  for (const std::string& element : elements) AppendBytesElement(element, wire);
  Tensor tensor = Make<char>(DataType::kBytes, {wire.begin(), wire.end()});
  tensor.shape = {static_cast<std::int64_t>(elements.size())};
  return tensor;
}

TEST(TensorText, NumbersAreAsShortAsTheyCanBe) {
  EXPECT_THAT(ElementsAsText(Make<float>(DataType::kFp32, {0.1F, 1.0F, 5.5F, 1e-10F}), kAll),
              ElementsAre("0.1", "1", "5.5", "1e-10"));
  EXPECT_THAT(ElementsAsText(Make<double>(DataType::kFp64, {0.1, 1e300}), kAll), ElementsAre("0.1", "1e+300"));
  EXPECT_THAT(ElementsAsText(Make<std::uint64_t>(DataType::kUint64, {std::numeric_limits<std::uint64_t>::max()}), kAll),
              ElementsAre("18446744073709551615"));
  EXPECT_THAT(ElementsAsText(Make<std::int8_t>(DataType::kInt8, {-128, 7}), kAll), ElementsAre("-128", "7"));
  EXPECT_THAT(ElementsAsText(Make<std::uint8_t>(DataType::kBool, {0, 1}), kAll), ElementsAre("false", "true"));
}

TEST(TensorText, WhatIsNoNumberIsNamedAsInRest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(ElementsAsJson(Make<float>(DataType::kFp32, {std::nanf(""), kInfinity, -kInfinity}), kAll),
              ElementsAre("NaN", "Infinity", "-Infinity"));
}

TEST(TensorText, HalfPrecisionIsReadable) {
  EXPECT_THAT(ElementsAsText(Make<std::uint16_t>(DataType::kFp16, {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00}), kAll),
              ElementsAre("1", "-2", "65504", "5.9604645e-08", "Infinity"));
  EXPECT_THAT(ElementsAsText(Make<std::uint16_t>(DataType::kBf16, {0x3f80, 0xc000, 0x7fc0}), kAll),
              ElementsAre("1", "-2", "NaN"));
}

TEST(TensorText, StringsAreQuotedInJsonAndWhereATerminalWouldObeyThem) {
  const Tensor strings = Strings({"wörld", "a\"b", "\x1b[2J"});
  EXPECT_THAT(ElementsAsText(strings, kAll), ElementsAre("wörld", "a\"b", "\"\\u001b[2J\""));
  EXPECT_THAT(ElementsAsJson(strings, 2), ElementsAre("\"wörld\"", "\"a\\\"b\""));
}

}  // namespace
}  // namespace tandem::cli
