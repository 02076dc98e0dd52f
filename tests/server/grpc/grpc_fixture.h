#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include "api/base/mutex.h"
#include "api/wire/proto/inference.grpc.pb.h"
#include "colocation/admission.h"
#include "colocation/dispatcher.h"
#include "colocation/policies/none.h"
#include "server/grpc/grpc_server.h"
#include "server/infer/inference_service.h"
#include "server/metrics/request_metrics.h"
#include "server/repository/model_repository.h"
#include "tests/fakes/fake_session.h"

namespace tandem::testing {

// A model that runs until it is let go or cancelled.
class BlockingModel {
 public:
  FakeSession::RunFunction Run() {
    return [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                  CancelToken& cancel) -> Result<std::vector<Tensor>> {
      const auto on_cancel = cancel.OnCancel([this] {
        MutexLock lock(mu_);
        ++cancelled_;
        changed_.NotifyAll();
      });
      {
        MutexLock lock(mu_);
        ++started_;
        changed_.NotifyAll();
        while (!open_ && !cancel.cancelled()) changed_.Wait(mu_);
      }
      if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "cancelled");
      Tensor output = inputs[0];
      output.name = outputs[0];
      return std::vector{output};
    };
  }
  void Open() {
    MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void WaitStarted(int runs = 1) {
    MutexLock lock(mu_);
    while (started_ < runs) changed_.Wait(mu_);
  }
  void WaitCancelled(int runs = 1) {
    MutexLock lock(mu_);
    while (cancelled_ < runs) changed_.Wait(mu_);
  }
  int started() {
    MutexLock lock(mu_);
    return started_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ GUARDED_BY(mu_) = false;
  int started_ GUARDED_BY(mu_) = 0;
  int cancelled_ GUARDED_BY(mu_) = 0;
};

// y = 2 x.
inline Result<std::vector<Tensor>> Twice(std::span<const Tensor> inputs, std::span<const std::string>, CancelToken&) {
  std::vector<float> values = ValuesOf<float>(inputs[0]);
  for (float& value : values) value *= 2;
  return std::vector{MakeTensor("y", DataType::kFp32, inputs[0].shape, values)};
}

// Sessions by the model's name: "slow" blocks, all others double; a file that says "bad" cannot be loaded.
class NamedFactory final : public repository::SessionFactory {
 public:
  explicit NamedFactory(BlockingModel& slow) : slow_(slow) {}
  Result<std::unique_ptr<InferenceSession>> Create(const repository::SessionRequest& request) override {
    std::string content;
    std::ifstream(request.file) >> content;
    if (content == "bad") return Invalid("the model file is corrupt");
    return std::make_unique<FakeSession>(PairSignature(), request.model == "slow" ? slow_.Run() : Twice);
  }

 private:
  BlockingModel& slow_;
};

// A gRPC server on a free port over real parts and two small models: "pair" in versions 1 and 2, and "slow".
class GrpcFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("pair/1/model.onnx", "good");
    Write("pair/2/model.onnx", "good");
    Write("pair/config.pbtxt", "version_policy { all {} }");
    Write("slow/1/model.onnx", "good");
    // One request a run: tests count what is left in the queue.
    Write("slow/config.pbtxt", "max_batch_size: 1");
    ASSERT_TRUE(repository_.emplace(RepositoryOptions(), factory_).Start());
    dispatcher_.emplace(RealClock::Instance(), admission_, DispatcherOptions{});
    inference_.emplace(
        InferenceService::Parts{RealClock::Instance(), *dispatcher_, regions_, metrics_},
        [this](std::string_view model, std::string_view version) { return repository_->Find(model, version); },
        std::nullopt);
    core_.emplace(ServerCore{RealClock::Instance(), info_, *repository_, *inference_, regions_, log_settings_,
                             trace_settings_, bulk_, accepting_, false, arbiter_});
    Serve({.port = 0});
  }

  void TearDown() override {
    slow_.Open();
    stub_.reset();
    channel_.reset();
    server_.reset();
    dispatcher_.reset();
    inference_.reset();
    repository_.reset();
    std::filesystem::remove_all(folder_.parent_path());
  }

  // Starts the server anew.
  void Serve(GrpcOptions options) {
    options.port = 0;
    server_.reset();
    auto server = GrpcServer::Start(std::move(options), *core_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    channel_ = grpc::CreateCustomChannel(Target(), grpc::InsecureChannelCredentials(), ChannelArguments());
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }

  [[nodiscard]] std::string Target() const { return "127.0.0.1:" + std::to_string(server_->port()); }

  static grpc::ChannelArguments ChannelArguments() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return arguments;
  }

  // A file below the model repository; "../" is beside it.
  [[nodiscard]] std::string Path(const std::string& path) const { return (folder_ / path).lexically_normal(); }
  void Write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(Path(path)).parent_path());
    std::ofstream(Path(path)) << content;
  }

  static inference::ModelInferRequest PairRequest(const std::string& model, const std::vector<float>& values) {
    inference::ModelInferRequest request;
    request.set_model_name(model);
    request.set_id("id-1");
    auto& input = *request.add_inputs();
    input.set_name("x");
    input.set_datatype("FP32");
    input.add_shape(static_cast<std::int64_t>(values.size() / 2));
    input.add_shape(2);
    request.add_raw_input_contents(values.data(), values.size() * sizeof(float));
    return request;
  }

  static std::vector<float> Floats(const std::string& raw) {
    std::vector<float> values(raw.size() / sizeof(float));
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

  BlockingModel slow_;

 private:
  static std::filesystem::path MakeFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "grpc_fixture_XXXXXX").string();
    const std::filesystem::path models = std::filesystem::path(::mkdtemp(name.data())) / "models";
    std::filesystem::create_directory(models);
    return models;
  }
  [[nodiscard]] repository::RepositoryOptions RepositoryOptions() const {
    repository::RepositoryOptions options;
    options.roots = {folder_};
    options.mode = repository::ControlMode::kExplicit;
    options.load_models = {"*"};
    options.default_warmup = false;
    return options;
  }

  const std::filesystem::path folder_ = MakeFolder();
  NamedFactory factory_{slow_};
  prometheus::Registry registry_;
  RequestMetrics metrics_{registry_};
  BoundedQueueAdmission admission_;
  const NonePolicy colocation_;
  const Arbiter arbiter_{RealClock::Instance(), colocation_, {}, {}};
  ServerInfo info_{.version = "9.9"};
  LogSettings log_settings_{[](const LogSettings::Values&) {}};
  TraceSettings trace_settings_;

 protected:
  SharedRegions regions_;
  std::optional<InferenceService> inference_;
  std::optional<ServerCore> core_;
  std::atomic<bool> accepting_{true};
  BulkThread bulk_;
  std::optional<repository::ModelRepository> repository_;
  std::optional<Dispatcher> dispatcher_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

}  // namespace tandem::testing
