#include "loadgen/grpc_describer.h"

#include <grpcpp/grpcpp.h>

#include "api/wire/json_text.h"
#include "api/wire/proto/inference.grpc.pb.h"
#include "loadgen/grpc_channel.h"
#include "loadgen/grpc_message.h"

namespace tandem::loadgen {
namespace {

constexpr std::size_t kMaxTensorsOfAModel = 4096;

ErrorCode CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::NOT_FOUND: return ErrorCode::kNotFound;
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED: return ErrorCode::kUnauthenticated;
    case grpc::StatusCode::UNIMPLEMENTED: return ErrorCode::kUnsupported;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED: return ErrorCode::kUnavailable;
    default: return ErrorCode::kInternal;
  }
}

template <typename List>
Result<std::vector<TensorSpec>> ReadSpecs(const List& tensors) {
  if (static_cast<std::size_t>(tensors.size()) > kMaxTensorsOfAModel) {
    return Fail(ErrorCode::kInternal, "the server describes a model with {} tensors", tensors.size());
  }
  std::vector<TensorSpec> specs;
  for (const auto& tensor : tensors) {
    const auto type = ParseDataType(tensor.datatype());
    if (!type) {
      return Fail(ErrorCode::kInternal, "the server names the unknown datatype '{}'", Excerpt(tensor.datatype()));
    }
    TensorSpec spec{.name = tensor.name(), .type = *type, .shape = {}};
    spec.shape.assign(tensor.shape().begin(), tensor.shape().end());
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace

struct GrpcDescriber::Parts {
  const GrpcTransportOptions options;
  const Metadata metadata;
  const std::unique_ptr<inference::GRPCInferenceService::Stub> stub;

  // One call; the error is the server's, or says that there is none.
  template <typename Request, typename Answer>
  Status Call(grpc::Status (inference::GRPCInferenceService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                            Answer*),
              const Request& request, Answer& answer) {
    grpc::ClientContext context;
    context.set_deadline(FromNow(options.request_timeout));
    for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
    const grpc::Status status = (*stub.*method)(&context, request, &answer);
    if (status.ok()) return {};
    return Fail(CodeOf(status.error_code()), "{}", Excerpt(status.error_message()));
  }
};

Result<std::unique_ptr<GrpcDescriber>> GrpcDescriber::Connect(GrpcTransportOptions options, Metadata metadata) {
  TANDEM_TRY(CheckMetadata(metadata));
  options.channels = 1;
  TANDEM_ASSIGN(const auto channels, OpenChannels(options));
  auto stub = inference::GRPCInferenceService::NewStub(channels.front());
  auto parts = std::make_unique<Parts>(std::move(options), std::move(metadata), std::move(stub));
  return std::unique_ptr<GrpcDescriber>(new GrpcDescriber(std::move(parts)));
}

GrpcDescriber::GrpcDescriber(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GrpcDescriber::~GrpcDescriber() = default;

Result<ModelSignature> GrpcDescriber::Describe(const std::string& model, const std::string& version) {
  using Stub = inference::GRPCInferenceService::Stub;
  inference::ModelMetadataRequest request;
  request.set_name(model);
  request.set_version(version);
  inference::ModelMetadataResponse metadata;
  TANDEM_TRY(parts_->Call(&Stub::ModelMetadata, request, metadata));
  ModelSignature signature;
  TANDEM_ASSIGN(signature.inputs, ReadSpecs(metadata.inputs()));
  TANDEM_ASSIGN(signature.outputs, ReadSpecs(metadata.outputs()));
  inference::ModelConfigRequest config_request;
  config_request.set_name(model);
  config_request.set_version(version);
  inference::ModelConfigResponse config;
  // A server without that extension has no optional inputs to tell of.
  if (!parts_->Call(&Stub::ModelConfig, config_request, config)) return signature;
  for (const auto& input : config.config().input()) {
    for (TensorSpec& spec : signature.inputs) spec.optional |= input.optional() && spec.name == input.name();
  }
  return signature;
}

std::string GrpcDescriber::ServerName() {
  inference::ServerMetadataResponse about;
  if (!parts_->Call(&inference::GRPCInferenceService::Stub::ServerMetadata, inference::ServerMetadataRequest(),
                    about)) {
    return "";
  }
  return about.version().empty() ? about.name() : about.name() + " " + about.version();
}

}  // namespace tandem::loadgen
