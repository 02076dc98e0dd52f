#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/wire/proto/health.grpc.pb.h"
#include "tests/server/grpc/grpc_fixture.h"

namespace tandem::testing {
namespace {

namespace health = grpc::health::v1;
using grpc::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Stub = inference::GRPCInferenceService::Stub;

class ControlCalls : public GrpcFixture {
 protected:
  // Calls with a fresh context; the response is left in place.
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    return (stub_.get()->*method)(&context, request, &response);
  }

  template <typename Request>
  static Request Named(const std::string& name, const std::string& version = "") {
    Request request;
    request.set_name(name);
    request.set_version(version);
    return request;
  }

  grpc::Status Load(const inference::RepositoryModelLoadRequest& request) {
    inference::RepositoryModelLoadResponse response;
    return Call(&Stub::RepositoryModelLoad, request, response);
  }
  grpc::Status Unload(const std::string& name) {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(name);
    inference::RepositoryModelUnloadResponse response;
    return Call(&Stub::RepositoryModelUnload, request, response);
  }
};

TEST_F(ControlCalls, LivenessAndReadiness) {
  inference::ServerLiveResponse live;
  ASSERT_TRUE(Call(&Stub::ServerLive, {}, live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(Call(&Stub::ServerReady, {}, ready).ok());
  EXPECT_TRUE(ready.ready());
  accepting_ = false;
  ASSERT_TRUE(Call(&Stub::ServerReady, {}, ready).ok());
  EXPECT_FALSE(ready.ready());
}

TEST_F(ControlCalls, ModelReadinessOfKnownAndUnknownModels) {
  inference::ModelReadyResponse ready;
  ASSERT_TRUE(Call(&Stub::ModelReady, Named<inference::ModelReadyRequest>("pair"), ready).ok());
  EXPECT_TRUE(ready.ready());
  ASSERT_TRUE(Call(&Stub::ModelReady, Named<inference::ModelReadyRequest>("pair", "7"), ready).ok());
  EXPECT_FALSE(ready.ready());
  ASSERT_TRUE(Call(&Stub::ModelReady, Named<inference::ModelReadyRequest>("nope"), ready).ok());
  EXPECT_FALSE(ready.ready());
}

TEST_F(ControlCalls, ServerMetadataListsTheExtensions) {
  inference::ServerMetadataResponse response;
  ASSERT_TRUE(Call(&Stub::ServerMetadata, {}, response).ok());
  EXPECT_EQ(response.name(), "tandem");
  EXPECT_EQ(response.version(), "9.9");
  EXPECT_THAT(response.extensions(), Contains("statistics"));
}

TEST_F(ControlCalls, ModelMetadataListsAllVersionsUnlessOneIsAskedFor) {
  inference::ModelMetadataResponse response;
  ASSERT_TRUE(Call(&Stub::ModelMetadata, Named<inference::ModelMetadataRequest>("pair"), response).ok());
  EXPECT_THAT(response.versions(), ElementsAre("1", "2"));
  EXPECT_EQ(response.platform(), "onnxruntime_onnx");
  EXPECT_THAT(response.inputs(0).shape(), ElementsAre(-1, 2));
  ASSERT_TRUE(Call(&Stub::ModelMetadata, Named<inference::ModelMetadataRequest>("pair", "1"), response).ok());
  EXPECT_THAT(response.versions(), ElementsAre("1"));
  EXPECT_EQ(Call(&Stub::ModelMetadata, Named<inference::ModelMetadataRequest>("nope"), response).error_code(),
            StatusCode::NOT_FOUND);
  EXPECT_EQ(Call(&Stub::ModelMetadata, Named<inference::ModelMetadataRequest>("pair", "x"), response).error_code(),
            StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlCalls, ModelConfigIsTheCompletedOne) {
  inference::ModelConfigResponse response;
  ASSERT_TRUE(Call(&Stub::ModelConfig, Named<inference::ModelConfigRequest>("pair"), response).ok());
  EXPECT_EQ(response.config().name(), "pair");
  EXPECT_GT(response.config().max_batch_size(), 0);
  ASSERT_EQ(response.config().input_size(), 1);
  EXPECT_EQ(response.config().input(0).data_type(), inference::TYPE_FP32);
}

TEST_F(ControlCalls, StatisticsOfOneVersionOneModelAndAll) {
  grpc::ClientContext context;
  inference::ModelInferResponse answer;
  ASSERT_TRUE(stub_->ModelInfer(&context, PairRequest("pair", {1, 2, 3, 4}), &answer).ok());
  inference::ModelStatisticsResponse response;
  ASSERT_TRUE(Call(&Stub::ModelStatistics, Named<inference::ModelStatisticsRequest>("pair", "2"), response).ok());
  ASSERT_EQ(response.model_stats_size(), 1);
  EXPECT_EQ(response.model_stats(0).version(), "2");
  EXPECT_EQ(response.model_stats(0).inference_count(), 2U);
  EXPECT_EQ(response.model_stats(0).execution_count(), 1U);
  EXPECT_EQ(response.model_stats(0).inference_stats().success().count(), 1U);
  EXPECT_EQ(response.model_stats(0).batch_stats(0).batch_size(), 2U);
  ASSERT_TRUE(Call(&Stub::ModelStatistics, Named<inference::ModelStatisticsRequest>("pair"), response).ok());
  EXPECT_EQ(response.model_stats_size(), 2);
  ASSERT_TRUE(Call(&Stub::ModelStatistics, {}, response).ok());
  EXPECT_EQ(response.model_stats_size(), 3);
  EXPECT_EQ(Call(&Stub::ModelStatistics, Named<inference::ModelStatisticsRequest>("nope"), response).error_code(),
            StatusCode::NOT_FOUND);
}

TEST_F(ControlCalls, UnloadsAndLoadsModels) {
  ASSERT_TRUE(Unload("pair").ok());
  EXPECT_FALSE(repository_->IsReady("pair", ""));
  inference::RepositoryIndexRequest request;
  request.set_ready(true);
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Call(&Stub::RepositoryIndex, request, index).ok());
  ASSERT_EQ(index.models_size(), 1);
  EXPECT_EQ(index.models(0).name(), "slow");
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("pair");
  ASSERT_TRUE(Load(load).ok());
  EXPECT_TRUE(repository_->IsReady("pair", ""));
}

TEST_F(ControlCalls, LoadsAModelFromFilesInTheCall) {
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("sent");
  (*load.mutable_parameters())["config"].set_string_param(R"({"max_batch_size": 2})");
  (*load.mutable_parameters())["file:4/model.onnx"].set_bytes_param("good");
  const grpc::Status status = Load(load);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(repository_->IsReady("sent", "4"));
}

TEST_F(ControlCalls, ALoadThatFailsSaysWhy) {
  Write("broken/1/model.onnx", "bad");
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("broken");
  grpc::Status status = Load(load);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.error_message(), HasSubstr("corrupt"));
  load.set_model_name("../etc");
  EXPECT_FALSE(Load(load).ok());
  load.set_model_name("pair");
  (*load.mutable_parameters())["file:../../x"].set_bytes_param("x");
  EXPECT_EQ(Load(load).error_code(), StatusCode::INVALID_ARGUMENT);
  load.set_repository_name("other");
  EXPECT_EQ(Load(load).error_code(), StatusCode::UNIMPLEMENTED);
}

TEST_F(ControlCalls, RegistersListsAndUnregistersSharedMemory) {
  const std::string key = "/grpc_control_test_" + std::to_string(::getpid());
  const int fd = ::shm_open(key.c_str(), O_CREAT | O_RDWR, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, 64), 0);
  inference::SystemSharedMemoryRegisterRequest add;
  add.set_name("region");
  add.set_key(key);
  add.set_byte_size(64);
  inference::SystemSharedMemoryRegisterResponse added;
  ASSERT_TRUE(Call(&Stub::SystemSharedMemoryRegister, add, added).ok());
  add.set_name("too_long");
  add.set_byte_size(65);
  EXPECT_EQ(Call(&Stub::SystemSharedMemoryRegister, add, added).error_code(), StatusCode::INVALID_ARGUMENT);

  inference::SystemSharedMemoryStatusResponse status;
  ASSERT_TRUE(Call(&Stub::SystemSharedMemoryStatus, {}, status).ok());
  ASSERT_EQ(status.regions_size(), 1);
  EXPECT_EQ(status.regions().at("region").byte_size(), 64U);
  EXPECT_EQ(status.regions().at("region").key(), key);

  inference::SystemSharedMemoryUnregisterResponse removed;
  ASSERT_TRUE(Call(&Stub::SystemSharedMemoryUnregister, {}, removed).ok());
  EXPECT_TRUE(regions_.All().empty());
  inference::SystemSharedMemoryStatusRequest one;
  one.set_name("region");
  EXPECT_FALSE(Call(&Stub::SystemSharedMemoryStatus, one, status).ok());
  ::close(fd);
  ::shm_unlink(key.c_str());
}

TEST_F(ControlCalls, ThereIsNoCudaSharedMemory) {
  inference::CudaSharedMemoryStatusResponse status;
  ASSERT_TRUE(Call(&Stub::CudaSharedMemoryStatus, {}, status).ok());
  EXPECT_EQ(status.regions_size(), 0);
  inference::CudaSharedMemoryUnregisterResponse removed;
  EXPECT_TRUE(Call(&Stub::CudaSharedMemoryUnregister, {}, removed).ok());
  inference::CudaSharedMemoryRegisterResponse added;
  EXPECT_EQ(Call(&Stub::CudaSharedMemoryRegister, {}, added).error_code(), StatusCode::UNIMPLEMENTED);
}

TEST_F(ControlCalls, TraceAndLogSettingsAreReadAndChanged) {
  inference::TraceSettingRequest trace;
  inference::TraceSettingResponse traced;
  ASSERT_TRUE(Call(&Stub::TraceSetting, trace, traced).ok());
  EXPECT_THAT(traced.settings().at("trace_level").value(), ElementsAre("OFF"));
  (*trace.mutable_settings())["trace_rate"].add_value("5");
  trace.set_model_name("pair");
  ASSERT_TRUE(Call(&Stub::TraceSetting, trace, traced).ok());
  EXPECT_THAT(traced.settings().at("trace_rate").value(), ElementsAre("5"));
  trace.set_model_name("nope");
  EXPECT_EQ(Call(&Stub::TraceSetting, trace, traced).error_code(), StatusCode::NOT_FOUND);

  inference::LogSettingsRequest log;
  inference::LogSettingsResponse logged;
  (*log.mutable_settings())["log_verbose_level"].set_uint32_param(3);
  ASSERT_TRUE(Call(&Stub::LogSettings, log, logged).ok());
  EXPECT_EQ(logged.settings().at("log_verbose_level").uint32_param(), 3U);
  (*log.mutable_settings())["nonsense"].set_bool_param(true);
  EXPECT_EQ(Call(&Stub::LogSettings, log, logged).error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlCalls, HealthFollowsReadiness) {
  const auto stub = health::Health::NewStub(channel_);
  const auto check = [&](const std::string& service) {
    grpc::ClientContext context;
    health::HealthCheckRequest request;
    request.set_service(service);
    health::HealthCheckResponse response;
    const grpc::Status status = stub->Check(&context, request, &response);
    return std::pair(status.error_code(), response.status());
  };
  EXPECT_EQ(check(""), std::pair(StatusCode::OK, health::HealthCheckResponse::SERVING));
  EXPECT_EQ(check("inference.GRPCInferenceService"), std::pair(StatusCode::OK, health::HealthCheckResponse::SERVING));
  EXPECT_EQ(check("other").first, StatusCode::NOT_FOUND);
  accepting_ = false;
  EXPECT_EQ(check(""), std::pair(StatusCode::OK, health::HealthCheckResponse::NOT_SERVING));
}

TEST_F(ControlCalls, AWatcherHearsOfChangesUntilTheServerDrains) {
  const auto stub = health::Health::NewStub(channel_);
  grpc::ClientContext context;
  const auto watch = stub->Watch(&context, {});
  health::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  accepting_ = false;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  accepting_ = true;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVING);
  std::jthread drain([&] { server_->Drain(std::chrono::minutes(1)); });
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(ControlCalls, AWatcherOfAnUnknownServiceIsToldSo) {
  const auto stub = health::Health::NewStub(channel_);
  grpc::ClientContext context;
  health::HealthCheckRequest request;
  request.set_service("other");
  const auto watch = stub->Watch(&context, request);
  health::HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), health::HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
  EXPECT_FALSE(watch->Read(&response));
}

}  // namespace
}  // namespace tandem::testing
