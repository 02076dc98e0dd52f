#include "server/cli/demo_served.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

// What the server answers when each picture is taken for the digit given.
std::string Answer(const std::string& version, const std::vector<std::size_t>& digits) {
  std::vector<float> scores(10 * digits.size(), -1.0F);
  for (std::size_t i = 0; i < digits.size(); ++i) scores[10 * i + digits[i]] = 2;
  const std::size_t bytes = scores.size() * sizeof(float);
  return R"({"model_name":"digits","model_version":")" + version +
         R"(","outputs":[{"name":"scores","datatype":"FP32","shape":[)" + std::to_string(digits.size()) +
         R"(,10],"parameters":{"binary_data_size":)" + std::to_string(bytes) + "}}]}" +
         std::string(reinterpret_cast<const char*>(scores.data()), bytes);
}

TEST(ServedDigits, CountsAnswersAndWhatWasRightByVersion) {
  ServedDigits served({3, 1, 4, 1});
  ASSERT_TRUE(served.Take(Answer("1", {3, 0, 0, 0})));
  ASSERT_TRUE(served.Take(Answer("1", {3, 0, 0, 0})));
  ASSERT_TRUE(served.Take(Answer("12", {3, 1, 4, 9})));
  ASSERT_EQ(served.versions().size(), 2U);
  EXPECT_EQ(served.Of(1).answers, 2U);
  EXPECT_EQ(served.Of(1).pictures, 8U);
  EXPECT_DOUBLE_EQ(served.Of(1).accuracy(), 0.25);
  EXPECT_EQ(served.Of(12).answers, 1U);
  EXPECT_DOUBLE_EQ(served.Of(12).accuracy(), 0.75);
  EXPECT_EQ(served.Of(2).answers, 0U);
  EXPECT_DOUBLE_EQ(served.Of(2).accuracy(), 0);
}

TEST(ServedDigits, AnAnswerThatIsNoneCountsForNothing) {
  ServedDigits served({3, 1});
  for (const std::string& body :
       {std::string(), std::string("{}"), Answer("", {3, 1}), Answer("x", {3, 1}), Answer("1", {3}),
        Answer("1", {3, 1}).substr(0, 120), std::string(R"({"model_version":"1","outputs":[]})")}) {
    EXPECT_FALSE(served.Take(body)) << body;
  }
  EXPECT_TRUE(served.versions().empty());
}

}  // namespace
}  // namespace tandem::cli
