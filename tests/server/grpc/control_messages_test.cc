#include "server/grpc/control_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem::grpc_front {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ControlMessages, ModelMetadataShowsVersionsPlatformAndShapesWithTheBatchDimension) {
  const auto servable = tandem::testing::MakeServable("pair", {.max_batch_size = 8});
  inference::ModelMetadataResponse message;
  Fill(*servable, "onnxruntime_onnx", std::vector<std::string>{"1", "3"}, message);
  EXPECT_EQ(message.name(), "pair");
  EXPECT_EQ(message.platform(), "onnxruntime_onnx");
  EXPECT_THAT(message.versions(), ElementsAre("1", "3"));
  ASSERT_EQ(message.inputs_size(), 1);
  EXPECT_EQ(message.inputs(0).name(), "x");
  EXPECT_EQ(message.inputs(0).datatype(), "FP32");
  EXPECT_THAT(message.inputs(0).shape(), ElementsAre(-1, 2));
  ASSERT_EQ(message.outputs_size(), 1);
  EXPECT_THAT(message.outputs(0).shape(), ElementsAre(-1, 2));
}

TEST(ControlMessages, StatisticsHaveAllEightDurationsAlsoWhenNothingRan) {
  inference::ModelStatistics message;
  Fill("pair", "1", ModelTotals{}, message);
  const inference::InferStatistics& stats = message.inference_stats();
  EXPECT_TRUE(stats.has_success() && stats.has_fail() && stats.has_queue() && stats.has_compute_input());
  EXPECT_TRUE(stats.has_compute_infer() && stats.has_compute_output() && stats.has_cache_hit() &&
              stats.has_cache_miss());
  EXPECT_EQ(message.batch_stats_size(), 0);
}

TEST(ControlMessages, StatisticsCountRequestsExecutionsAndBatches) {
  ModelTotals totals{.last_inference_ms = 77, .inference_count = 12, .execution_count = 3};
  totals.success = {.count = 5, .ns = 500};
  totals.batches[4].compute_infer = {.count = 3, .ns = 300};
  inference::ModelStatistics message;
  Fill("pair", "2", totals, message);
  EXPECT_EQ(message.version(), "2");
  EXPECT_EQ(message.last_inference(), 77U);
  EXPECT_EQ(message.inference_count(), 12U);
  EXPECT_EQ(message.execution_count(), 3U);
  EXPECT_EQ(message.inference_stats().success().ns(), 500U);
  ASSERT_EQ(message.batch_stats_size(), 1);
  EXPECT_EQ(message.batch_stats(0).batch_size(), 4U);
  EXPECT_EQ(message.batch_stats(0).compute_infer().count(), 3U);
}

TEST(ControlMessages, IndexSpellsStatesAsTheProtocolDoes) {
  const std::vector<repository::IndexEntry> entries = {
      {.name = "a", .version = "1", .state = repository::ModelState::kReady, .reason = ""},
      {.name = "b", .version = "", .state = repository::ModelState::kUnavailable, .reason = "corrupt"}};
  inference::RepositoryIndexResponse message;
  Fill(entries, message);
  ASSERT_EQ(message.models_size(), 2);
  EXPECT_EQ(message.models(0).state(), "READY");
  EXPECT_EQ(message.models(1).state(), "UNAVAILABLE");
  EXPECT_EQ(message.models(1).reason(), "corrupt");
}

TEST(ControlMessages, LoadTakesConfigurationAndFiles) {
  inference::RepositoryModelLoadRequest message;
  (*message.mutable_parameters())["config"].set_string_param("{}");
  (*message.mutable_parameters())["file:1/model.onnx"].set_bytes_param("bytes");
  const auto options = TakeLoadOptions(message);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->config_json, "{}");
  EXPECT_THAT(options->files, ElementsAre(::testing::Pair("1/model.onnx", "bytes")));
}

TEST(ControlMessages, LoadRefusesParametersOfTheWrongKindOrName) {
  inference::RepositoryModelLoadRequest number;
  (*number.mutable_parameters())["config"].set_int64_param(1);
  EXPECT_THAT(TakeLoadOptions(number).error().message, HasSubstr("'config'"));
  inference::RepositoryModelLoadRequest text;
  (*text.mutable_parameters())["file:1/m"].set_string_param("x");
  EXPECT_THAT(TakeLoadOptions(text).error().message, HasSubstr("'file:1/m'"));
  inference::RepositoryModelLoadRequest other;
  (*other.mutable_parameters())[std::string(5000, 'k')].set_bool_param(true);
  EXPECT_LT(TakeLoadOptions(other).error().message.size(), 300U);
  inference::RepositoryModelLoadRequest named;
  named.set_repository_name("other");
  EXPECT_EQ(TakeLoadOptions(named).error().code, ErrorCode::kUnsupported);
}

TEST(ControlMessages, UnloadKnowsOnlyUnloadDependents) {
  inference::RepositoryModelUnloadRequest message;
  (*message.mutable_parameters())["unload_dependents"].set_bool_param(true);
  EXPECT_TRUE(CheckUnload(message));
  (*message.mutable_parameters())["other"].set_bool_param(true);
  EXPECT_FALSE(CheckUnload(message));
}

TEST(ControlMessages, LogSettingsKeepTheirTypes) {
  inference::LogSettingsRequest request;
  (*request.mutable_settings())["log_info"].set_bool_param(false);
  (*request.mutable_settings())["log_verbose_level"].set_uint32_param(2);
  (*request.mutable_settings())["log_format"].set_string_param("ISO8601");
  const auto changes = ReadLogChanges(request);
  ASSERT_TRUE(changes);
  inference::LogSettingsResponse response;
  Fill(*changes, response);
  EXPECT_TRUE(response.settings().at("log_info").has_bool_param());
  EXPECT_EQ(response.settings().at("log_verbose_level").uint32_param(), 2U);
  EXPECT_EQ(response.settings().at("log_format").string_param(), "ISO8601");
  (*request.mutable_settings())["log_error"];
  EXPECT_THAT(ReadLogChanges(request).error().message, HasSubstr("'log_error'"));
}

TEST(ControlMessages, ATraceSettingWithoutValueIsReset) {
  inference::TraceSettingRequest request;
  (*request.mutable_settings())["trace_level"].add_value("TIMESTAMPS");
  (*request.mutable_settings())["trace_rate"];
  const TraceSettings::Changes changes = ReadTraceChanges(request);
  EXPECT_EQ(changes.at("trace_level"), std::vector<std::string>{"TIMESTAMPS"});
  EXPECT_EQ(changes.at("trace_rate"), std::nullopt);
}

}  // namespace
}  // namespace tandem::grpc_front
