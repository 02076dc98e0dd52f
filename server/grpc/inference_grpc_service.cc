#include "server/grpc/inference_grpc_service.h"

#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/wire/proto/inference.grpc.pb.h"
#include "server/grpc/control_messages.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/infer_reactors.h"
#include "server/grpc/raw_message.h"

namespace tandem::grpc_front {
namespace {

using Service = inference::GRPCInferenceService;
using Context = grpc::CallbackServerContext;
using Raw = grpc::ByteBuffer;
using Reactor = grpc::ServerUnaryReactor;

// Every method takes raw bytes; see raw_message.h for why. Split in three only to be readable.
template <typename Base>
using RawModelMethods = Service::WithRawCallbackMethod_ModelReady<Service::WithRawCallbackMethod_ModelMetadata<
    Service::WithRawCallbackMethod_ModelInfer<Service::WithRawCallbackMethod_ModelStreamInfer<
        Service::WithRawCallbackMethod_ModelConfig<Service::WithRawCallbackMethod_ModelStatistics<Base>>>>>>;
template <typename Base>
using RawServerMethods = Service::WithRawCallbackMethod_ServerLive<Service::WithRawCallbackMethod_ServerReady<
    Service::WithRawCallbackMethod_ServerMetadata<Service::WithRawCallbackMethod_RepositoryIndex<
        Service::WithRawCallbackMethod_RepositoryModelLoad<Service::WithRawCallbackMethod_RepositoryModelUnload<
            Service::WithRawCallbackMethod_TraceSetting<Service::WithRawCallbackMethod_LogSettings<Base>>>>>>>>;
template <typename Base>
using RawMemoryMethods =
    Service::WithRawCallbackMethod_SystemSharedMemoryStatus<Service::WithRawCallbackMethod_SystemSharedMemoryRegister<
        Service::WithRawCallbackMethod_SystemSharedMemoryUnregister<
            Service::WithRawCallbackMethod_CudaSharedMemoryStatus<
                Service::WithRawCallbackMethod_CudaSharedMemoryRegister<
                    Service::WithRawCallbackMethod_CudaSharedMemoryUnregister<Base>>>>>>;
using RawService = RawServerMethods<RawModelMethods<RawMemoryMethods<Service::Service>>>;

// The bytes of a request belong to its call alone; gRPC hands them over as constant though nobody else reads them.
Raw& Own(const Raw* request) {
  return const_cast<Raw&>(*request);
}

// A call that the repository answers from its own thread. Ends early when the client goes or the server stops, so that
// neither waits for a model to load. Deletes itself.
class RepositoryCall final : public Reactor {
 public:
  RepositoryCall(Raw& answer, ByteBudget::Lease lease)
      : answer_(answer), shared_(std::make_shared<Shared>(std::move(lease))) {
    MutexLock lock(shared_->mu);
    shared_->call = this;
  }

  // For the repository.
  [[nodiscard]] repository::ModelRepository::Done Done() {
    return [shared = shared_](const Status& status) {
      if (RepositoryCall* call = shared->Take()) call->End(status);
    };
  }

  void OnCancel() override {
    if (shared_->Take() != nullptr) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  // Outlives the call when that ends early.
  struct Shared {
    explicit Shared(ByteBudget::Lease taken) : lease(std::move(taken)) {}

    // Whoever gets it finishes the call.
    RepositoryCall* Take() EXCLUDES(mu) {
      MutexLock lock(mu);
      return std::exchange(call, nullptr);
    }

    const ByteBudget::Lease lease;  // Until the repository has let go of the request.
    Mutex mu;
    RepositoryCall* call GUARDED_BY(mu) = nullptr;
  };

  void End(const Status& status) {
    const Status packed = Guarded([&]() -> Status {
      TANDEM_TRY(status);
      // Both answers are empty messages.
      return PackMessage(inference::RepositoryModelLoadResponse(), answer_);
    });
    Finish(ToGrpcStatus(packed));
  }

  Raw& answer_;
  const std::shared_ptr<Shared> shared_;
};

class InferenceGrpcService final : public RawService {
 public:
  explicit InferenceGrpcService(FrontEndParts& parts) : parts_(parts), core_(parts.core) {}

  // Open to all: probes carry no token.
  Reactor* ServerLive(Context* context, const Raw* request, Raw* answer) override {
    return AnswerOpenly<inference::ServerLiveRequest, inference::ServerLiveResponse>(
        context, request, answer, [](auto&, auto& response) -> Status {
          response.set_live(true);
          return {};
        });
  }

  Reactor* ServerReady(Context* context, const Raw* request, Raw* answer) override {
    return AnswerOpenly<inference::ServerReadyRequest, inference::ServerReadyResponse>(
        context, request, answer, [this](auto&, auto& response) -> Status {
          response.set_ready(parts_.Serving());
          return {};
        });
  }

  Reactor* ModelReady(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::ModelReadyRequest, inference::ModelReadyResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          response.set_ready(core_.repository.IsReady(asked.name(), asked.version()));
          return {};
        });
  }

  Reactor* ServerMetadata(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
        context, request, answer, [this](auto&, auto& response) -> Status {
          Fill(core_.info, response);
          return {};
        });
  }

  Reactor* ModelMetadata(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          TANDEM_ASSIGN(const auto servable, core_.repository.Find(asked.name(), asked.version()));
          TANDEM_ASSIGN(const auto config, core_.repository.Config(asked.name(), asked.version()));
          std::vector<std::string> versions = {servable->version_text()};
          if (asked.version().empty()) {
            TANDEM_ASSIGN(versions, core_.repository.Versions(asked.name()));
          }
          Fill(*servable, config->platform(), versions, response);
          return {};
        });
  }

  Reactor* ModelInfer(Context* context, const Raw* request, Raw* answer) override {
    if (const Status admitted = Admit(*context); !admitted) return Refuse(context, admitted);
    return StartInfer(parts_, *context, Own(request), *answer);
  }

  grpc::ServerBidiReactor<Raw, Raw>* ModelStreamInfer(Context* context) override {
    return StartInferStream(parts_, *context, Admit(*context));
  }

  Reactor* ModelConfig(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::ModelConfigRequest, inference::ModelConfigResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          TANDEM_ASSIGN(const auto config, core_.repository.Config(asked.name(), asked.version()));
          *response.mutable_config() = *config;
          return {};
        });
  }

  Reactor* ModelStatistics(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
        context, request, answer, [this](auto& asked, auto& response) { return Statistics(asked, response); });
  }

  Reactor* RepositoryIndex(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          TANDEM_TRY(CheckRepositoryName(asked.repository_name()));
          Fill(core_.repository.Index(asked.ready()), response);
          return {};
        });
  }

  Reactor* RepositoryModelLoad(Context* context, const Raw* request, Raw* answer) override {
    return ChangeRepository<inference::RepositoryModelLoadRequest>(
        context, request, answer, [this](auto& asked, RepositoryCall& call) -> Status {
          TANDEM_ASSIGN(repository::LoadOptions options, TakeLoadOptions(asked));
          core_.repository.LoadAsync(asked.model_name(), std::move(options), call.Done());
          return {};
        });
  }

  Reactor* RepositoryModelUnload(Context* context, const Raw* request, Raw* answer) override {
    return ChangeRepository<inference::RepositoryModelUnloadRequest>(
        context, request, answer, [this](auto& asked, RepositoryCall& call) -> Status {
          TANDEM_TRY(CheckUnload(asked));
          core_.repository.UnloadAsync(asked.model_name(), call.Done());
          return {};
        });
  }

  Reactor* SystemSharedMemoryStatus(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::SystemSharedMemoryStatusRequest, inference::SystemSharedMemoryStatusResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          std::vector<std::shared_ptr<const SharedRegion>> regions(1);
          if (asked.name().empty()) {
            regions = core_.regions.All();
          } else {
            TANDEM_ASSIGN(regions[0], core_.regions.Find(asked.name()));
          }
          Fill(regions, response);
          return {};
        });
  }

  Reactor* SystemSharedMemoryRegister(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::SystemSharedMemoryRegisterRequest, inference::SystemSharedMemoryRegisterResponse>(
        context, request, answer, [this](auto& asked, auto&) {
          return core_.regions.Register(asked.name(), asked.key(), asked.offset(), asked.byte_size());
        });
  }

  Reactor* SystemSharedMemoryUnregister(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::SystemSharedMemoryUnregisterRequest, inference::SystemSharedMemoryUnregisterResponse>(
        context, request, answer, [this](auto& asked, auto&) -> Status {
          if (asked.name().empty()) {
            core_.regions.UnregisterAll();
          } else {
            core_.regions.Unregister(asked.name());
          }
          return {};
        });
  }

  // There is no CUDA memory here: nothing is registered, and nothing is left to unregister.
  Reactor* CudaSharedMemoryStatus(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse>(
        context, request, answer, [](auto&, auto&) -> Status { return {}; });
  }

  Reactor* CudaSharedMemoryRegister(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::CudaSharedMemoryRegisterRequest, inference::CudaSharedMemoryRegisterResponse>(
        context, request, answer, [](auto&, auto&) -> Status {
          return Fail(ErrorCode::kUnsupported, "CUDA shared memory is not supported: this build has no CUDA");
        });
  }

  Reactor* CudaSharedMemoryUnregister(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::CudaSharedMemoryUnregisterRequest, inference::CudaSharedMemoryUnregisterResponse>(
        context, request, answer, [](auto&, auto&) -> Status { return {}; });
  }

  Reactor* TraceSetting(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::TraceSettingRequest, inference::TraceSettingResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          if (!asked.model_name().empty()) TANDEM_TRY(core_.repository.Find(asked.model_name(), ""));
          TANDEM_TRY(core_.trace_settings.Update(asked.model_name(), ReadTraceChanges(asked)));
          Fill(core_.trace_settings.Get(asked.model_name()), response);
          return {};
        });
  }

  Reactor* LogSettings(Context* context, const Raw* request, Raw* answer) override {
    return Answer<inference::LogSettingsRequest, inference::LogSettingsResponse>(
        context, request, answer, [this](auto& asked, auto& response) -> Status {
          TANDEM_ASSIGN(const auto changes, ReadLogChanges(asked));
          if (!changes.empty()) TANDEM_TRY(core_.log_settings.Update(changes));
          Fill(core_.log_settings.Get(), response);
          return {};
        });
  }

 private:
  [[nodiscard]] Status Admit(const Context& context) const {
    if (!parts_.options.allows) return {};
    const auto& metadata = context.client_metadata();
    const auto header = metadata.find("authorization");
    const std::string_view value =
        header == metadata.end() ? std::string_view() : std::string_view(header->second.data(), header->second.size());
    if (parts_.options.allows(value)) return {};
    return Fail(ErrorCode::kUnauthenticated, "a valid bearer token is needed in the authorization header");
  }

  static Reactor* Refuse(Context* context, const Status& status) {
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(status));
    return reactor;
  }

  template <typename Request, typename Response, typename Handle>
  Reactor* Answer(Context* context, const Raw* request, Raw* answer, Handle handle) {
    if (const Status admitted = Guarded([&] { return Admit(*context); }); !admitted) return Refuse(context, admitted);
    return AnswerOpenly<Request, Response>(context, request, answer, std::move(handle));
  }

  // Answers a call that can be answered at once.
  template <typename Request, typename Response, typename Handle>
  Reactor* AnswerOpenly(Context* context, const Raw* request, Raw* answer, Handle handle) {
    const Status answered = Guarded([&]() -> Status {
      Request asked;
      TANDEM_TRY(TakeMessage(Own(request), parts_.options.max_message_bytes, asked));
      Response response;
      TANDEM_TRY(handle(asked, response));
      return PackMessage(response, *answer);
    });
    return Refuse(context, answered);
  }

  // Begins a call that the repository's worker answers; `begin` has passed on call.Done() when it returns success.
  template <typename Request, typename Begin>
  Reactor* ChangeRepository(Context* context, const Raw* request, Raw* answer, Begin begin) {
    RepositoryCall* call = nullptr;
    const Status begun = Guarded([&]() -> Status {
      TANDEM_TRY(Admit(*context));
      TANDEM_ASSIGN(ByteBudget::Lease lease, parts_.budget->Take(request->Length()));
      Request asked;
      TANDEM_TRY(TakeMessage(Own(request), parts_.options.max_message_bytes, asked));
      call = new RepositoryCall(*answer, std::move(lease));
      return begin(asked, *call);
    });
    if (call == nullptr) return Refuse(context, begun);
    if (!begun) call->Done()(begun);
    return call;
  }

  Status Statistics(const inference::ModelStatisticsRequest& asked, inference::ModelStatisticsResponse& response) {
    std::int64_t version = 0;
    if (!asked.name().empty()) {
      TANDEM_ASSIGN(const auto found, core_.repository.Find(asked.name(), asked.version()));
      if (!asked.version().empty()) version = found->version();
    }
    for (const auto& servable : core_.repository.Snapshot()) {
      if (!asked.name().empty() && servable->name() != asked.name()) continue;
      if (version != 0 && servable->version() != version) continue;
      Fill(servable->name(), servable->version_text(), servable->statistics().Totals(), *response.add_model_stats());
    }
    return {};
  }

  FrontEndParts& parts_;
  ServerCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeInferenceGrpcService(FrontEndParts& parts) {
  return std::make_unique<InferenceGrpcService>(parts);
}

}  // namespace tandem::grpc_front
