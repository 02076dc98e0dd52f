#include "server/infer/classification.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using testing::MakeTensor;

std::vector<std::string_view> Elements(const Tensor& tensor) {
  return BytesElements(tensor.data.view);
}

TEST(Classification, GivesTheLargestOfEachRowWithItsIndex) {
  const Tensor scores = MakeTensor("y", DataType::kFp32, {2, 3}, std::vector<float>{1, 3, 2, 9, 7, 8});
  const auto top = Classify(scores, 2, true, {});
  ASSERT_TRUE(top);
  EXPECT_EQ(top->type, DataType::kBytes);
  EXPECT_EQ(top->shape, (Shape{2, 2}));
  EXPECT_EQ(Elements(*top), (std::vector<std::string_view>{"3.000000:1", "2.000000:2", "9.000000:0", "8.000000:2"}));
}

TEST(Classification, AddsLabelsAndStopsAtTheNumberOfClasses) {
  const Tensor scores = MakeTensor("y", DataType::kInt32, {3}, std::vector<std::int32_t>{1, 3, 2});
  const auto top = Classify(scores, 10, false, {"cat", "dog"});
  ASSERT_TRUE(top);
  EXPECT_EQ(top->shape, Shape{3});
  EXPECT_EQ(Elements(*top), (std::vector<std::string_view>{"3:1:dog", "2:2", "1:0:cat"}));
}

TEST(Classification, PutsNaNLast) {
  const Tensor scores = MakeTensor("y", DataType::kFp32, {3}, std::vector<float>{NAN, 1, 2});
  const auto top = Classify(scores, 2, false, {});
  ASSERT_TRUE(top);
  EXPECT_EQ(Elements(*top), (std::vector<std::string_view>{"2.000000:2", "1.000000:1"}));
}

TEST(Classification, FindsTheSameAmongMany) {
  std::vector<std::int32_t> values(50'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7919 % 49'999);
  const auto top = Classify(MakeTensor("y", DataType::kInt32, {50'000}, values), 4, false, {});
  ASSERT_TRUE(top);
  // The last value is that of place 0 once more; of equals the first comes first.
  const auto at = [&](std::int32_t value) { return std::to_string(std::ranges::find(values, value) - values.begin()); };
  std::vector<std::string> expected;
  for (const int value : {49'998, 49'997, 49'996, 49'995}) expected.push_back(std::to_string(value) + ":" + at(value));
  const auto elements = Elements(*top);
  EXPECT_EQ(std::vector<std::string>(elements.begin(), elements.end()), expected);
}

TEST(Classification, RefusesMoreClassesThanOneAnswerShouldHold) {
  const Tensor scores = MakeTensor("y", DataType::kUint8, {1'000, 200}, std::vector<std::uint8_t>(200'000));
  EXPECT_TRUE(Classify(scores, 100, true, {}));
  EXPECT_FALSE(Classify(scores, 101, true, {}));
}

TEST(Classification, RefusesScoresThatDoNotFillTheirShape) {
  Tensor scores = MakeTensor("y", DataType::kFp32, {2}, std::vector<float>{1, 2});
  scores.shape = {1'000'000};
  EXPECT_FALSE(Classify(scores, 3, false, {}));
}

TEST(Classification, RefusesTypesWithoutAnOrder) {
  const Tensor scores = MakeTensor("y", DataType::kFp16, {2}, std::vector<std::uint16_t>{1, 2});
  EXPECT_FALSE(Classify(scores, 1, false, {}));
}

}  // namespace
}  // namespace tandem
