#include "loadgen/answer_check.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

using testing::HasSubstr;

template <typename T>
Tensor Make(DataType type, const std::vector<T>& values, const std::string& name = "y") {
  AlignedBuffer buffer(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(buffer.data(), values.data(), buffer.size());
  return {.name = name,
          .type = type,
          .shape = {static_cast<std::int64_t>(values.size())},
          .data = Bytes::Own(std::move(buffer))};
}

Tensor Floats(const std::vector<float>& values) {
  return Make<float>(DataType::kFp32, values);
}

std::string Answer(const std::string& data, const std::string& id = "") {
  return Format(R"({{"id":"{}","outputs":[{{"name":"y","datatype":"FP32","shape":[2],"data":[{}]}}]}})", id, data);
}

TEST(Difference, NamesTheFirstElementThatDiffers) {
  EXPECT_FALSE(Difference(Floats({1, 2}), Floats({1, 2}), 0));
  EXPECT_THAT(*Difference(Floats({1, 2, 3}), Floats({1, 2.5, 4}), 0), HasSubstr("'y': element 1 is 2.5, expected 2"));
  EXPECT_THAT(*Difference(Floats({1}), Floats({1, 2}), 0), HasSubstr("shape [2], expected [1]"));
  EXPECT_THAT(*Difference(Floats({1}), Make<std::int32_t>(DataType::kInt32, {1}), 0), HasSubstr("INT32"));
  EXPECT_THAT(*Difference(Make<std::int64_t>(DataType::kInt64, {-7}), Make<std::int64_t>(DataType::kInt64, {8}), 5),
              HasSubstr("is 8, expected -7"));  // A tolerance is for floats only.
}

TEST(Difference, FloatsMayDifferByTheTolerance) {
  EXPECT_TRUE(Difference(Floats({1}), Floats({1.01F}), 0));
  EXPECT_FALSE(Difference(Floats({1}), Floats({1.01F}), 0.02));
  EXPECT_TRUE(Difference(Floats({1}), Floats({1.03F}), 0.02));
  EXPECT_FALSE(Difference(Make<double>(DataType::kFp64, {1}), Make<double>(DataType::kFp64, {1.01}), 0.02));
  const auto half = [](std::uint16_t bits) { return Make<std::uint16_t>(DataType::kFp16, {bits}); };
  EXPECT_FALSE(Difference(half(0x3c00), half(0x3c01), 0.01));
  EXPECT_TRUE(Difference(half(0x3c00), half(0x4000), 0.01));
}

TEST(Difference, NothingIsNearNaNButNaN) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(Difference(Floats({nan}), Floats({1}), 1e9));
  EXPECT_FALSE(Difference(Floats({nan}), Floats({-nan}), 1e9));
  EXPECT_FALSE(Difference(Floats({infinity}), Floats({infinity}), 1));
  EXPECT_TRUE(Difference(Floats({infinity}), Floats({-infinity}), 1e30));
}

TEST(AnswerCheck, ComparesWithWhatIsExpected) {
  AnswerCheck check({.outputs = {Floats({1, 2})}}, AnswerForm::kRest);
  EXPECT_FALSE(check.Mismatch(Answer("1,2")));
  EXPECT_FALSE(check.Mismatch(Answer("1,2")));
  EXPECT_FALSE(check.Mismatch(Answer("1.0, 2.0", "another id")));
  EXPECT_THAT(*check.Mismatch(Answer("1,3")), HasSubstr("element 1"));
  EXPECT_FALSE(check.Mismatch(Answer("1,2")));
  EXPECT_THAT(*check.Mismatch(R"({"outputs":[]})"), HasSubstr("'y' is not in the answer"));
  EXPECT_TRUE(check.Mismatch("oops"));
}

TEST(AnswerCheck, WithoutAnExpectationTheFirstAnswerIsTheRightOne) {
  AnswerCheck check({}, AnswerForm::kRest);
  EXPECT_TRUE(check.Mismatch("not an answer"));
  EXPECT_FALSE(check.Mismatch(Answer("5,6", "a")));
  EXPECT_FALSE(check.Mismatch(Answer("5,6", "b")));
  EXPECT_TRUE(check.Mismatch(Answer("5,7", "a")));
}

TEST(AnswerCheck, LooksAtOneOfSoMany) {
  AnswerCheck check({.outputs = {}, .tolerance = 0, .every = 3}, AnswerForm::kRest);
  std::vector<bool> due;
  for (int i = 0; i < 7; ++i) due.push_back(check.Due());
  EXPECT_EQ(due, (std::vector<bool>{true, false, false, true, false, false, true}));
}

}  // namespace
}  // namespace tandem::loadgen
