#include "server/repository/model_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/model_config_text.h"
#include "server/repository/config_check.h"
#include "server/repository/reshaped_session.h"
#include "tests/server/repository/repository_fixture.h"

namespace tandem::repository {
namespace {

using std::chrono::microseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const ModelFile kFile{"/r/m/1/model.onnx", ModelFormat::kOnnx};

TensorSpec Spec(std::string name, DataType type, Shape shape, bool optional = false) {
  return {std::move(name), type, std::move(shape), optional};
}

// An image classifier with a variable batch.
ModelSignature Batched() {
  return {{Spec("x", DataType::kFp32, {-1, 3, 224, 224})}, {Spec("y", DataType::kFp32, {-1, 1000})}, true};
}
ModelSignature Fixed() {
  return {{Spec("x", DataType::kFp32, {1, 3, 224, 224})}, {Spec("y", DataType::kFp32, {1, 1000})}};
}

inference::ModelConfig Parse(const std::string& pbtxt) {
  auto parsed = ParseModelConfigPbtxt(pbtxt);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? parsed->config : inference::ModelConfig();
}

Result<ModelSettings> Settle(const std::string& pbtxt, const ModelSignature& graph) {
  const inference::ModelConfig config = Parse(pbtxt);
  TANDEM_TRY(CheckConfig("m", config));
  return CompleteSettings("m", config, graph, kFile);
}

std::string ErrorOf(const std::string& pbtxt, const ModelSignature& graph,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto settings = Settle(pbtxt, graph);
  if (settings) return "no error";
  EXPECT_EQ(settings.error().code, code) << settings.error().message;
  return settings.error().message;
}

TEST(ModelSettings, ABareModelWhoseFirstDimensionIsNotCalledABatchIsNotBatched) {
  ModelSignature graph = Batched();
  graph.named_batch = false;
  const auto settings = Settle("", graph);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->batching.max_batch_size, 0);
  EXPECT_FALSE(settings->batching.dynamic);
  const auto told = Settle("max_batch_size: 8", graph);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->batching.max_batch_size, 8);
}

TEST(ModelSettings, ABareModelThatNamesItsBatchIsBatchedWithoutWaiting) {
  const auto settings = Settle("", Batched());
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->batching.max_batch_size, kDerivedMaxBatchSize);
  EXPECT_TRUE(settings->batching.dynamic);
  EXPECT_EQ(settings->batching.max_queue_delay, microseconds(0));
  EXPECT_EQ(settings->signature, Batched());
  EXPECT_FALSE(settings->slo);
  const inference::ModelConfig& config = settings->config;
  EXPECT_EQ(config.name(), "m");
  EXPECT_EQ(config.platform(), "onnxruntime_onnx");
  EXPECT_EQ(config.backend(), "onnxruntime");
  EXPECT_EQ(config.default_model_filename(), "model.onnx");
  EXPECT_EQ(config.version_policy().latest().num_versions(), 1U);
  EXPECT_TRUE(config.has_dynamic_batching());
  ASSERT_EQ(config.input_size(), 1);
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(3, 224, 224));
  EXPECT_THAT(config.output(0).dims(), ElementsAre(1000));
}

TEST(ModelSettings, ABareModelWithAFixedFirstDimensionIsServedAsItIs) {
  const auto settings = Settle("", Fixed());
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->batching.max_batch_size, 0);
  EXPECT_FALSE(settings->batching.dynamic);
  EXPECT_FALSE(settings->config.has_dynamic_batching());
  EXPECT_EQ(settings->signature, Fixed());
  EXPECT_THAT(settings->config.input(0).dims(), ElementsAre(1, 3, 224, 224));
}

TEST(ConfigCheck, ALoadCallMayNotGiveProvidersFilesOrLibraries) {
  const auto sent = [](const std::string& option) {
    return CheckSentConfig(Parse(R"(optimization { execution_accelerators { gpu_execution_accelerator {
        name: "tensorrt" parameters { key: ")" +
                                 option + R"(" value: "1" } } } })"));
  };
  EXPECT_TRUE(sent("trt_fp16_enable"));
  for (const char* option : {"trt_extra_plugin_lib_paths", "trt_engine_cache_path", "user_compute_stream", "zzz"}) {
    const auto checked = sent(option);
    ASSERT_FALSE(checked) << option;
    EXPECT_THAT(checked.error().message, AllOf(HasSubstr("'tensorrt'"), HasSubstr(option)));
  }
}

TEST(ConfigCheck, TextThatIsNotUtf8IsRefusedNamingTheField) {
  EXPECT_THAT(ErrorOf(R"(parameters { key: "a" value { string_value: "\377" } })", Batched()),
              HasSubstr("parameters.value.string_value"));
  EXPECT_THAT(ErrorOf(R"(metric_tags { key: "\377" value: "v" })", Batched()), HasSubstr("metric_tags.key"));
}

TEST(ModelSettings, AFullConfigurationIsTakenAtItsWord) {
  const auto settings = Settle(
      R"(name: "m" platform: "onnxruntime_onnx" max_batch_size: 8
         input { name: "x" data_type: TYPE_FP32 dims: [3, 224, 224] }
         output { name: "y" data_type: TYPE_FP32 dims: [1000] }
         dynamic_batching { preferred_batch_size: [8, 4] max_queue_delay_microseconds: 250 priority_levels: 3
                            default_priority_level: 2
                            default_queue_policy { default_timeout_microseconds: 9000 allow_timeout_override: true
                                                   max_queue_size: 7 } }
         parameters [{ key: "slo_ms" value { string_value: "12.5" } }, { key: "weight" value { string_value: "2.5" } }])",
      Batched());
  ASSERT_TRUE(settings) << settings.error().message;
  const BatchSettings& batching = settings->batching;
  EXPECT_EQ(batching.max_batch_size, 8);
  EXPECT_TRUE(batching.dynamic);
  EXPECT_THAT(batching.preferred_sizes, ElementsAre(4, 8));
  EXPECT_EQ(batching.max_queue_delay, microseconds(250));
  EXPECT_EQ(batching.priority_levels, 3U);
  EXPECT_EQ(batching.default_priority, 2U);
  EXPECT_EQ(batching.max_queue_size, 7U);
  EXPECT_EQ(batching.weight, 2.5);
  EXPECT_EQ(batching.default_timeout, microseconds(9000));
  EXPECT_EQ(settings->slo, microseconds(12500));
}

TEST(ModelSettings, WithoutDynamicBatchingAGivenBatchSizeIsOnlyALimit) {
  const auto settings = Settle("max_batch_size: 8", Batched());
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->batching.max_batch_size, 8);
  EXPECT_FALSE(settings->batching.dynamic);
  EXPECT_THAT(settings->config.input(0).dims(), ElementsAre(3, 224, 224));
}

TEST(ModelSettings, NoBatchSizeBesideListedTensorsMeansNone) {
  const auto settings = Settle(R"(input { name: "x" data_type: TYPE_FP32 dims: [-1, 3, 224, 224] })", Batched());
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->batching.max_batch_size, 0);
  EXPECT_EQ(settings->signature.inputs[0].shape, Shape({-1, 3, 224, 224}));
}

TEST(ModelSettings, APreferredSizeRaisesADerivedLimit) {
  EXPECT_EQ(Settle("dynamic_batching { preferred_batch_size: 64 }", Batched())->batching.max_batch_size, 64);
}

TEST(ModelSettings, AConfigurationMayNarrowTheGraph) {
  const ModelSignature graph = {{Spec("x", DataType::kInt64, {-1, -1})},
                                {Spec("y", DataType::kFp32, {-1, 4}), Spec("z", DataType::kFp32, {-1, -1})}};
  const auto settings = Settle(R"(max_batch_size: 4 input { name: "x" data_type: TYPE_INT64 dims: 128 }
                                  output { name: "z" data_type: TYPE_FP32 dims: 128 })",
                               graph);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signature.inputs[0].shape, Shape({-1, 128}));
  ASSERT_EQ(settings->signature.outputs.size(), 1U);
  EXPECT_EQ(settings->signature.outputs[0].name, "z");
}

TEST(ModelSettings, ABatchOfOneFitsAGraphThatFixesIt) {
  const auto settings = Settle("max_batch_size: 1", Fixed());
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signature.inputs[0].shape, Shape({-1, 3, 224, 224}));
}

TEST(ModelSettings, ContradictionsNameBothSides) {
  EXPECT_THAT(ErrorOf(R"(input { name: "x" data_type: TYPE_FP32 dims: [3, 224, 224] })",
                      {{Spec("x", DataType::kInt64, {-1, 10})}, {}}),
              AllOf(HasSubstr("input 'x' is TYPE_FP32 [3,224,224]"), HasSubstr("the graph has INT64 [-1,10]")));
  EXPECT_THAT(ErrorOf(R"(max_batch_size: 8 input { name: "x" dims: [3, 200, 224] })", Batched()),
              AllOf(HasSubstr("[3,200,224]"), HasSubstr("[-1,3,224,224]")));
  EXPECT_THAT(ErrorOf(R"(max_batch_size: 8 output { name: "y" dims: [1000, 1] })", Batched()),
              AllOf(HasSubstr("output 'y'"), HasSubstr("[1000,1]"), HasSubstr("[-1,1000]")));
  // The batch dimension is not part of dims.
  EXPECT_THAT(ErrorOf(R"(max_batch_size: 8 input { name: "x" dims: [-1, 3, 224, 224] })", Batched()),
              HasSubstr("max_batch_size 8"));
  EXPECT_THAT(ErrorOf("max_batch_size: 8", Fixed()),
              AllOf(HasSubstr("max_batch_size 8"), HasSubstr("FP32 [1,3,224,224]")));
  EXPECT_THAT(ErrorOf(R"(input { name: "image" dims: 3 })", Batched()), AllOf(HasSubstr("'image'"), HasSubstr("'x'")));
  EXPECT_THAT(ErrorOf(R"(output { name: "probs" dims: 3 })", Batched()), AllOf(HasSubstr("'probs'"), HasSubstr("'y'")));
  EXPECT_THAT(ErrorOf(R"(input { name: "x" dims: [-1, 3, 224, 224] optional: true })", Batched()),
              HasSubstr("the graph requires it"));
  EXPECT_THAT(ErrorOf("max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }", Batched()),
              AllOf(HasSubstr("preferred_batch_size 8"), HasSubstr("max_batch_size is 4")));
  EXPECT_THAT(ErrorOf(R"(name: "other")", Batched()), AllOf(HasSubstr("'other'"), HasSubstr("'m'")));
}

TEST(ModelSettings, EveryRequiredInputMustBeListedOnceAnyIs) {
  const ModelSignature graph = {{Spec("a", DataType::kFp32, {4}), Spec("b", DataType::kFp32, {4}),
                                 Spec("c", DataType::kFp32, {4}, /*optional=*/true)},
                                {}};
  EXPECT_THAT(ErrorOf(R"(input { name: "a" dims: 4 })", graph), HasSubstr("does not list input 'b'"));
  const auto settings = Settle(R"(input [{ name: "b" dims: 4 }, { name: "a" dims: 4 }])", graph);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signature.inputs.size(), 2U);
  EXPECT_EQ(settings->signature.inputs[0].name, "a");
}

TEST(ModelSettings, AnOutputOfUnknownRankTakesTheConfigurationsShape) {
  const ModelSignature graph = {{Spec("x", DataType::kFp32, {-1, 2})}, {Spec("y", DataType::kFp32, {})}};
  const auto settings = Settle(R"(max_batch_size: 2 output { name: "y" dims: 5 })", graph);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signature.outputs[0].shape, Shape({-1, 5}));
}

TEST(ModelSettings, NumbersOutOfRangeAreErrorsNamingTheField) {
  EXPECT_THAT(ErrorOf("max_batch_size: -1", Batched()), HasSubstr("max_batch_size is -1"));
  EXPECT_THAT(ErrorOf("dynamic_batching { preferred_batch_size: -2 }", Batched()), HasSubstr("preferred_batch_size"));
  EXPECT_THAT(ErrorOf("dynamic_batching { max_queue_delay_microseconds: 18446744073709551615 }", Batched()),
              HasSubstr("max_queue_delay_microseconds is 18446744073709551615"));
  EXPECT_THAT(ErrorOf("dynamic_batching { priority_levels: 3 default_priority_level: 4 }", Batched()),
              HasSubstr("default_priority_level is 4"));
  EXPECT_THAT(ErrorOf("dynamic_batching { priority_levels: 3 }", Batched()), HasSubstr("default_priority_level is 0"));
  EXPECT_THAT(ErrorOf(R"(input { name: "x" dims: [3, -2] })", Batched()), HasSubstr("[3,-2]"));
  EXPECT_THAT(ErrorOf(R"(input { name: "x" dims: [0] })", Batched()), HasSubstr("[0]"));
  EXPECT_THAT(ErrorOf(R"(input { dims: [1] })", Batched()), HasSubstr("no name"));
  EXPECT_THAT(ErrorOf(R"(input [{ name: "x" }, { name: "x" }])", Batched()), HasSubstr("'x' twice"));
  EXPECT_THAT(ErrorOf("instance_group { count: -1 }", Batched()), HasSubstr("instance_group.count is -1"));
  for (const char* slo : {"", "abc", "0", "-5", "nan", "inf", "5ms", "1e300", " 5"}) {
    EXPECT_THAT(
        ErrorOf(std::string(R"(parameters { key: "slo_ms" value { string_value: ")") + slo + "\" } }", Batched()),
        HasSubstr("slo_ms"))
        << slo;
  }
  for (const char* weight : {"", "abc", "0", "-1", "nan", "inf", "0.009", "101", "1x"}) {
    EXPECT_THAT(
        ErrorOf(std::string(R"(parameters { key: "weight" value { string_value: ")") + weight + "\" } }", Batched()),
        HasSubstr(std::string("weight is '") + weight + "'; it must be a number from 0.01 to 100"));
  }
}

TEST(ModelSettings, WhatWeCannotDoIsNamed) {
  const auto error = [](const std::string& pbtxt) { return ErrorOf(pbtxt, Batched(), ErrorCode::kUnsupported); };
  EXPECT_THAT(error("sequence_batching {}"), HasSubstr("sequence_batching"));
  EXPECT_THAT(error(R"(ensemble_scheduling { step { model_name: "a" } })"), HasSubstr("ensemble_scheduling"));
  EXPECT_THAT(error("model_transaction_policy { decoupled: true }"), HasSubstr("decoupled"));
  EXPECT_THAT(error("response_cache { enable: true }"), HasSubstr("response_cache"));
  EXPECT_THAT(error(R"(platform: "tensorflow_savedmodel")"), HasSubstr("tensorflow_savedmodel"));
  EXPECT_THAT(error(R"(backend: "python")"), HasSubstr("python"));
  EXPECT_THAT(error(R"(input { name: "x" allow_ragged_batch: true })"), HasSubstr("allow_ragged_batch"));
  EXPECT_TRUE(Settle("model_transaction_policy { decoupled: false } response_cache { enable: false }", Batched()));
}

TEST(ModelSettings, PlatformBackendAndFileMustAgree) {
  EXPECT_THAT(ErrorOf(R"(platform: "tensorrt_plan" backend: "onnxruntime")", Batched()), HasSubstr("contradict"));
  EXPECT_TRUE(CheckFormat(Parse(R"(backend: "onnxruntime")"), kFile));
  const Status wrong = CheckFormat(Parse(R"(backend: "tensorrt")"), kFile);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, AllOf(HasSubstr("tensorrt"), HasSubstr("model.onnx")));
}

TEST(ModelSettings, ProvidersComeFromTheConfigurationElseFromTheServer) {
  const std::vector<ProviderChoice> defaults = {{"onednn", {}}};
  EXPECT_EQ(DescribeSession(Parse(""), defaults)->providers, defaults);
  EXPECT_TRUE(DescribeSession(Parse("instance_group { kind: KIND_CPU }"), defaults)->providers.empty());

  const auto gpu = DescribeSession(Parse("instance_group { kind: KIND_GPU gpus: 1 }"), defaults);
  EXPECT_EQ(gpu->device, DeviceKind::kGpu);
  EXPECT_EQ(gpu->gpu, 1);
  EXPECT_THAT(gpu->providers, ElementsAre(ProviderChoice{"cuda", {}}));

  const auto tensorrt =
      DescribeSession(Parse(R"(optimization { graph { level: 1 } execution_accelerators { gpu_execution_accelerator {
               name: "tensorrt" parameters { key: "trt_fp16_enable" value: "1" } } } })"),
                      {});
  EXPECT_THAT(tensorrt->providers,
              ElementsAre(ProviderChoice{"tensorrt", {{"trt_fp16_enable", "1"}}}, ProviderChoice{"cuda", {}}));
  EXPECT_EQ(tensorrt->graph_level, 1);

  const auto mixed = DescribeSession(Parse("instance_group [{ kind: KIND_GPU }, { kind: KIND_CPU }]"), {});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::kUnsupported);
}

TEST(ModelSettings, AReshapedModelTakesTheClientsShapesAndHandsTheGraphItsOwn) {
  // As in Triton's densenet example: the client sends [2], the graph wants [1,2].
  FakeFactory factory;
  const ModelSignature graph = {{Spec("x", DataType::kFp32, {1, 2})}, {Spec("y", DataType::kFp32, {1, 2})}};
  const auto settings = Settle(R"(input { name: "x" dims: 2 reshape { shape: [1, 2] } }
                                  output { name: "y" dims: 2 reshape { shape: [1, 2] } })",
                               graph);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signature.inputs[0].shape, Shape({2}));
  const auto session = ApplyReshape(settings->config, settings->signature,
                                    std::make_unique<FakeFactory::Session>(factory, graph, 3.0F, false));
  AlignedBuffer data(8);
  std::memset(data.data(), 0, 8);
  const std::vector<Tensor> inputs = {{"x", DataType::kFp32, {2}, Bytes::Own(std::move(data))}};
  const std::vector<std::string> outputs = {"y"};
  CancelToken cancel;
  const auto results = session->Run(inputs, outputs, cancel);
  ASSERT_TRUE(results);
  EXPECT_EQ(factory.last_inputs()[0].shape, Shape({1, 2}));
  EXPECT_EQ((*results)[0].shape, Shape({2}));
  EXPECT_THAT(ErrorOf(R"(input { name: "x" dims: 3 reshape { shape: [1, 2] } })", graph),
              HasSubstr("different numbers of elements"));
}

TEST(ModelSettings, AReshapeMayTakeAwayADimensionOfABatchedModel) {
  const ModelSignature graph = {{Spec("x", DataType::kFp32, {-1})}, {Spec("y", DataType::kFp32, {-1})}};
  const auto settings = Settle(R"(max_batch_size: 4 input { name: "x" dims: 1 reshape { shape: [] } }
                                  output { name: "y" dims: 1 reshape { shape: [] } })",
                               graph);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->signature.inputs[0].shape, Shape({-1, 1}));
}

}  // namespace
}  // namespace tandem::repository
