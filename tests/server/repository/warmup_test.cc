#include "server/repository/warmup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/model_config_text.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Warmup : public testing::Test {
 protected:
  Warmup() { repo_.Write("m/1/model.onnx", "x"); }

  [[nodiscard]] Result<std::vector<WarmupSample>> Build(const std::string& warmup, const std::string& batching = "") {
    const auto parsed = ParseModelConfigPbtxt(batching + " model_warmup { name: \"first\" " + warmup + " }");
    EXPECT_TRUE(parsed) << parsed.error().message;
    const ModelFile file{"/r/m/1/model.onnx", ModelFormat::kOnnx};
    TANDEM_ASSIGN(const ModelSettings settings, CompleteSettings("m", parsed->config, graph_, file));
    TANDEM_ASSIGN(const ModelFolder folder, FindModelFolder({repo_.path()}, "m"));
    return BuildWarmup(folder, settings);
  }

  TestFolder repo_;
  ModelSignature graph_ = {{{"x", DataType::kFp32, {-1, 2}}}, {{"y", DataType::kFp32, {-1, 2}}}, true};
};

TEST_F(Warmup, ZerosAndRandomDataHaveTheSampleShape) {
  auto samples =
      Build(R"(batch_size: 3 count: 2 inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 zero_data: true }})");
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ((*samples)[0].runs, 2U);
  EXPECT_EQ((*samples)[0].inputs[0].shape, Shape({3, 2}));
  EXPECT_EQ((*samples)[0].inputs[0].data.size(), 24U);
  samples = Build(R"(batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: 2 random_data: true }})");
  ASSERT_TRUE(samples);
  float value = 0;
  std::memcpy(&value, (*samples)[0].inputs[0].data.view.data(), sizeof(value));
  EXPECT_GE(value, 0.5F);
  EXPECT_LE(value, 1.0F);
}

TEST_F(Warmup, RandomDataFitsEveryDatatype) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    graph_.inputs[0].type = static_cast<DataType>(i);
    const auto samples = Build(R"(inputs { key: "x" value { dims: 2 random_data: true }})");
    ASSERT_TRUE(samples) << samples.error().message;
    EXPECT_TRUE(CheckTensorData((*samples)[0].inputs[0])) << i;
  }
}

TEST_F(Warmup, DataFilesComeFromTheWarmupFolder) {
  repo_.Write("m/warmup/x.bin", std::string(8, '\1'));
  const auto samples = Build(R"(inputs { key: "x" value { dims: 2 input_data_file: "x.bin" }})");
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_EQ(std::to_integer<int>((*samples)[0].inputs[0].data.view[0]), 1);
}

TEST_F(Warmup, DataFilesStayInTheRepository) {
  const TestFolder outside;
  outside.Write("x.bin", std::string(8, '\1'));
  repo_.Write("m/warmup/short.bin", "1");
  std::filesystem::create_symlink(outside.path() / "x.bin", repo_.path() / "m" / "warmup" / "link.bin");
  for (const std::string& file : {std::string("../../../etc/passwd"), (outside.path() / "x.bin").string(),
                                  std::string("link.bin"), std::string("missing.bin"), std::string("short.bin")}) {
    const auto samples = Build("inputs { key: \"x\" value { dims: 2 input_data_file: \"" + file + "\" }}");
    ASSERT_FALSE(samples) << file;
    EXPECT_THAT(samples.error().message, AllOf(HasSubstr("'first'"), HasSubstr("'x'"))) << file;
  }
}

TEST_F(Warmup, ASampleThatDoesNotFitTheModelIsAnErrorNamingIt) {
  for (const char* warmup :
       {R"()", R"(inputs { key: "z" value { dims: 2 zero_data: true }})",
        R"(inputs { key: "x" value { data_type: TYPE_INT8 dims: 2 zero_data: true }})",
        R"(inputs { key: "x" value { dims: 3 zero_data: true }})", R"(inputs { key: "x" value { dims: 2 }})",
        R"(inputs { key: "x" value { dims: -2 zero_data: true }})",
        R"(batch_size: 33 inputs { key: "x" value { dims: 2 zero_data: true }})",
        R"(count: 4000000000 inputs { key: "x" value { dims: 2 zero_data: true }})"}) {
    const auto samples = Build(warmup);
    ASSERT_FALSE(samples) << warmup;
    EXPECT_THAT(samples.error().message, HasSubstr("model_warmup 'first'")) << warmup;
  }
}

TEST_F(Warmup, AnEnormousShapeIsRefusedWithoutBeingAllocated) {
  graph_.inputs[0].shape = {-1, -1};
  EXPECT_FALSE(Build(R"(inputs { key: "x" value { dims: 4611686018427387904 zero_data: true }})"));
  EXPECT_FALSE(Build(R"(inputs { key: "x" value { dims: 1099511627776 zero_data: true }})"));
}

TEST_F(Warmup, TheDefaultSampleIsOneElementOfZeros) {
  graph_.inputs = {
      {"x", DataType::kFp32, {-1, -1, 3}}, {"s", DataType::kBytes, {-1}}, {"o", DataType::kFp32, {5}, true}};
  const auto sample = DefaultWarmup({.signature = graph_});
  ASSERT_TRUE(sample);
  ASSERT_EQ(sample->inputs.size(), 2U);
  EXPECT_EQ(sample->inputs[0].shape, Shape({1, 1, 3}));
  for (const Tensor& tensor : sample->inputs) EXPECT_TRUE(CheckTensorData(tensor));
  graph_.inputs[0].shape = {1, 1 << 20, 1 << 20};
  EXPECT_FALSE(DefaultWarmup({.signature = graph_}));
}

}  // namespace
}  // namespace tandem::repository
