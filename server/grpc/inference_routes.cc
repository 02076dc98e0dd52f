#include "server/grpc/inference_routes.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/wire/proto/inference.pb.h"
#include "server/grpc/control_messages.h"
#include "server/grpc/infer_calls.h"
#include "server/grpc/large_message.h"
#include "server/grpc/raw_message.h"
#include "server/grpc/unary_call.h"

namespace tandem::grpc_front {
namespace {

// A call that the repository answers from its own thread. Ends early when the client goes or the server stops, so that
// neither waits for a model to load.
class RepositoryCall final : public CallHandler {
 public:
  // Takes the request's bytes, sets what it has leased for them, and passes `done` on when it returns success.
  using Begin = std::function<Status(grpc::ByteBuffer& request, ByteBudget::Lease& lease,
                                     repository::ModelRepository::Done done)>;

  RepositoryCall(Call& call, const Begin& begin) : call_(call), begin_(begin) {
    MutexLock lock(shared_->mu);
    shared_->call = this;
  }

  void Start() override { call_.Read(); }

  void OnRead(bool /*ok*/, grpc::ByteBuffer& request) override {
    // The client may have gone while a large request waited to be parsed.
    if (!shared_->Waiting()) return;
    const Status begun = Guarded([&]() -> Status {
      return begin_(request, shared_->lease, [shared = shared_](const Status& status) {
        if (RepositoryCall* call = shared->Take()) call->End(status);
      });
    });
    if (!begun && shared_->Take() != nullptr) End(begun);
  }

  void OnGone() override {
    if (shared_->Take() != nullptr) call_.Finish(grpc::Status::CANCELLED);
  }

 private:
  // Outlives the call when that ends early.
  struct Shared {
    // Whoever gets it finishes the call.
    RepositoryCall* Take() EXCLUDES(mu) {
      MutexLock lock(mu);
      return std::exchange(call, nullptr);
    }
    [[nodiscard]] bool Waiting() EXCLUDES(mu) {
      MutexLock lock(mu);
      return call != nullptr;
    }

    ByteBudget::Lease lease;  // Set before the repository has the request; until it has let go of it.
    Mutex mu;
    RepositoryCall* call GUARDED_BY(mu) = nullptr;
  };

  void End(const Status& status) {
    grpc::ByteBuffer answer;
    const Status packed = Guarded([&]() -> Status {
      TANDEM_TRY(status);
      // Both answers are empty messages.
      return PackMessage(inference::RepositoryModelLoadResponse(), answer);
    });
    EndCall(call_, packed, answer);
  }

  // Constant after construction.
  Call& call_;
  const Begin& begin_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// Makes the routes. The handlers keep `parts`, not this.
class InferenceRoutes {
 public:
  InferenceRoutes(FrontEndParts& parts, Routes& routes) : parts_(parts), core_(parts.core), routes_(routes) {}

  void AddServerCalls() {
    // Open to all: probes carry no token.
    AddOpen<inference::ServerLiveRequest, inference::ServerLiveResponse>("ServerLive",
                                                                         [](auto&, auto& response) -> Status {
                                                                           response.set_live(true);
                                                                           return {};
                                                                         });
    AddOpen<inference::ServerReadyRequest, inference::ServerReadyResponse>(
        "ServerReady", [&parts = parts_](auto&, auto& response) -> Status {
          response.set_ready(parts.Serving());
          return {};
        });
    Add<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
        "ServerMetadata", [&core = core_](auto&, auto& response) -> Status {
          Fill(core.info, response);
          return {};
        });
    Add<inference::TraceSettingRequest, inference::TraceSettingResponse>(
        "TraceSetting", [&core = core_](auto& asked, auto& response) -> Status {
          if (!asked.model_name().empty()) TANDEM_TRY(core.repository.Find(asked.model_name(), ""));
          TANDEM_TRY(core.trace_settings.Update(asked.model_name(), ReadTraceChanges(asked)));
          Fill(core.trace_settings.Get(asked.model_name()), response);
          return {};
        });
    Add<inference::LogSettingsRequest, inference::LogSettingsResponse>(
        "LogSettings", [&core = core_](auto& asked, auto& response) -> Status {
          TANDEM_ASSIGN(const auto changes, ReadLogChanges(asked));
          if (!changes.empty()) TANDEM_TRY(core.log_settings.Update(changes));
          Fill(core.log_settings.Get(), response);
          return {};
        });
  }

  void AddModelCalls() {
    routes_[Name("ModelInfer")] = {.make = [&parts = parts_](Call& call) { return MakeInfer(parts, call); }};
    routes_[Name("ModelStreamInfer")] = {
        .make = [&parts = parts_](Call& call) { return MakeInferStream(parts, call); }};
    Add<inference::ModelReadyRequest, inference::ModelReadyResponse>(
        "ModelReady", [&core = core_](auto& asked, auto& response) -> Status {
          response.set_ready(core.repository.IsReady(asked.name(), asked.version()));
          return {};
        });
    Add<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
        "ModelMetadata", [&core = core_](auto& asked, auto& response) -> Status {
          TANDEM_ASSIGN(const auto servable, core.repository.Find(asked.name(), asked.version()));
          TANDEM_ASSIGN(const auto config, core.repository.Config(asked.name(), asked.version()));
          std::vector<std::string> versions = {servable->version_text()};
          if (asked.version().empty()) {
            TANDEM_ASSIGN(versions, core.repository.Versions(asked.name()));
          }
          Fill(*servable, config->platform(), versions, response);
          return {};
        });
    Add<inference::ModelConfigRequest, inference::ModelConfigResponse>(
        "ModelConfig", [&core = core_](auto& asked, auto& response) -> Status {
          TANDEM_ASSIGN(const auto config, core.repository.Config(asked.name(), asked.version()));
          *response.mutable_config() = *config;
          return {};
        });
    Add<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
        "ModelStatistics",
        [&core = core_](auto& asked, auto& response) { return Statistics(core.repository, asked, response); });
  }

  void AddRepositoryCalls() {
    Add<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
        "RepositoryIndex", [&core = core_](auto& asked, auto& response) -> Status {
          TANDEM_TRY(CheckRepositoryName(asked.repository_name()));
          Fill(core.repository.Index(asked.ready()), response);
          return {};
        });
    AddChange<inference::RepositoryModelLoadRequest>(
        "RepositoryModelLoad", parts_.options.max_message_bytes, [&core = core_](auto& asked, auto done) -> Status {
          TANDEM_ASSIGN(repository::LoadOptions options, TakeLoadOptions(asked));
          core.repository.LoadAsync(asked.model_name(), std::move(options), std::move(done));
          return {};
        });
    AddChange<inference::RepositoryModelUnloadRequest>(
        "RepositoryModelUnload", kMaxControlMessageBytes, [&core = core_](auto& asked, auto done) -> Status {
          TANDEM_TRY(CheckUnload(asked));
          core.repository.UnloadAsync(asked.model_name(), std::move(done));
          return {};
        });
  }

  void AddSharedMemoryCalls() {
    Add<inference::SystemSharedMemoryStatusRequest, inference::SystemSharedMemoryStatusResponse>(
        "SystemSharedMemoryStatus", [&core = core_](auto& asked, auto& response) -> Status {
          std::vector<std::shared_ptr<const SharedRegion>> regions(1);
          if (asked.name().empty()) {
            regions = core.regions.All();
          } else {
            TANDEM_ASSIGN(regions[0], core.regions.Find(asked.name()));
          }
          Fill(regions, response);
          return {};
        });
    Add<inference::SystemSharedMemoryRegisterRequest, inference::SystemSharedMemoryRegisterResponse>(
        "SystemSharedMemoryRegister", [&core = core_](auto& asked, auto&) {
          return core.regions.Register(asked.name(), asked.key(), asked.offset(), asked.byte_size());
        });
    Add<inference::SystemSharedMemoryUnregisterRequest, inference::SystemSharedMemoryUnregisterResponse>(
        "SystemSharedMemoryUnregister", [&core = core_](auto& asked, auto&) -> Status {
          if (asked.name().empty()) {
            core.regions.UnregisterAll();
          } else {
            core.regions.Unregister(asked.name());
          }
          return {};
        });
    // There is no CUDA memory here: nothing is registered, and nothing is left to unregister.
    Add<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse>(
        "CudaSharedMemoryStatus", [](auto&, auto&) -> Status { return {}; });
    Add<inference::CudaSharedMemoryRegisterRequest, inference::CudaSharedMemoryRegisterResponse>(
        "CudaSharedMemoryRegister", [](auto&, auto&) -> Status {
          return Fail(ErrorCode::kUnsupported, "CUDA shared memory is not supported: this build has no CUDA");
        });
    Add<inference::CudaSharedMemoryUnregisterRequest, inference::CudaSharedMemoryUnregisterResponse>(
        "CudaSharedMemoryUnregister", [](auto&, auto&) -> Status { return {}; });
  }

 private:
  static std::string Name(const char* method) { return std::string("/inference.GRPCInferenceService/") + method; }

  template <typename Request, typename Response, typename Answer>
  void Add(const char* method, Answer answer) {
    routes_[Name(method)] = UnaryRoute<Request, Response>(std::move(answer));
  }

  template <typename Request, typename Response, typename Answer>
  void AddOpen(const char* method, Answer answer) {
    Add<Request, Response>(method, std::move(answer));
    routes_[Name(method)].open = true;
  }

  // A call that the repository's worker answers; `begin` has passed on what it got for that when it returns success.
  template <typename Request, typename Begin>
  void AddChange(const char* method, std::size_t max_bytes, Begin begin) {
    RepositoryCall::Begin read_and_begin = [&budget = *parts_.budget, max_bytes, begin = std::move(begin)](
                                               grpc::ByteBuffer& bytes, ByteBudget::Lease& lease,
                                               repository::ModelRepository::Done done) -> Status {
      Request asked;
      TANDEM_ASSIGN(lease, TakeLargeMessage(budget, bytes, max_bytes, asked));
      return begin(asked, std::move(done));
    };
    routes_[Name(method)] = {.make = [begin = std::move(read_and_begin)](Call& call) {
      return std::make_shared<RepositoryCall>(call, begin);
    }};
  }

  static Status Statistics(const repository::ModelRepository& models, const inference::ModelStatisticsRequest& asked,
                           inference::ModelStatisticsResponse& response) {
    std::int64_t version = 0;
    if (!asked.name().empty()) {
      TANDEM_ASSIGN(const auto found, models.Find(asked.name(), asked.version()));
      if (!asked.version().empty()) version = found->version();
    }
    for (const auto& servable : models.Snapshot()) {
      if (!asked.name().empty() && servable->name() != asked.name()) continue;
      if (version != 0 && servable->version() != version) continue;
      Fill(servable->name(), servable->version_text(), servable->statistics().Totals(), *response.add_model_stats());
    }
    return {};
  }

  FrontEndParts& parts_;
  ServerCore& core_;
  Routes& routes_;
};

}  // namespace

void AddInferenceRoutes(FrontEndParts& parts, Routes& routes) {
  InferenceRoutes all(parts, routes);
  all.AddServerCalls();
  all.AddModelCalls();
  all.AddRepositoryCalls();
  all.AddSharedMemoryCalls();
}

}  // namespace tandem::grpc_front
