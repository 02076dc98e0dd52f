#include "server/cli/infer_answer.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <json/json.h>

namespace tandem::cli {
namespace {

using testing::HasSubstr;

Json::Value Parse(const std::string& text) {
  Json::Value value;
  std::string problem;
  const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
  EXPECT_TRUE(reader->parse(text.data(), text.data() + text.size(), &value, &problem)) << problem << "\n" << text;
  return value;
}

MixedAnswer Sample() {
  return {.json = Parse(R"({"model_name":"m","model_version":"1","id":"7","outputs":[
            {"name":"h","datatype":"FP16","shape":[1,2],"parameters":{"binary_data_size":4}},
            {"name":"s","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":6,"kept":true}}]})"),
          .bytes = std::string("\x00\x3c\x00\xc0\x02\x00\x00\x00hi", 10)};
}

TEST(InferAnswer, ReadsEveryOutputFromTheBytesBehindTheJson) {
  const auto outputs = OutputsOf(Sample());
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 2);
  EXPECT_EQ(OutputAsText(outputs->at(0)), "h FP16 [1,2]\n  1 -2");
  EXPECT_EQ(OutputAsText(outputs->at(1)), "s BYTES [1]\n  hi");
}

TEST(InferAnswer, JsonHasTheDataInItsPlace) {
  const MixedAnswer answer = Sample();
  const Json::Value json = Parse(AnswerAsJson(answer.json, *OutputsOf(answer)));
  EXPECT_EQ(json["id"].asString(), "7");
  EXPECT_EQ(json["outputs"][0]["data"], Parse("[1, -2]"));
  EXPECT_FALSE(json["outputs"][0].isMember("parameters"));
  EXPECT_EQ(json["outputs"][1]["data"], Parse(R"(["hi"])"));
  EXPECT_EQ(json["outputs"][1]["parameters"], Parse(R"({"kept":true})"));
}

TEST(InferAnswer, ShowsTheFirstOfManyValues) {
  MixedAnswer answer;
  answer.json =
      Parse(R"({"outputs":[{"name":"y","datatype":"UINT8","shape":[9],"parameters":{"binary_data_size":9}}]})");
  answer.bytes = std::string(9, '\1');
  EXPECT_EQ(OutputAsText(OutputsOf(answer)->front()), "y UINT8 [9]\n  1 1 1 1 1 1 1 1 … (9 values)");
}

TEST(InferAnswer, AnAnswerThatDoesNotFitItselfIsAnError) {
  MixedAnswer answer = Sample();
  answer.bytes.pop_back();
  EXPECT_THAT(OutputsOf(answer).error().message, HasSubstr("'s'"));
  answer = Sample();
  answer.json["outputs"][0]["shape"][0] = 3;
  EXPECT_FALSE(OutputsOf(answer));
  for (const char* text : {"[]", "{}", R"({"outputs":[1]})", R"({"outputs":[{"name":"y","shape":[1]}]})"}) {
    EXPECT_FALSE(OutputsOf({.json = Parse(text), .bytes = {}})) << text;
  }
}

}  // namespace
}  // namespace tandem::cli
