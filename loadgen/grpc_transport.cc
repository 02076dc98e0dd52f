#include "loadgen/grpc_transport.h"

#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>

#include "api/wire/json_text.h"
#include "api/wire/proto/inference.pb.h"
#include "loadgen/socket_address.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr const char* kMethod = "/inference.GRPCInferenceService/ModelInfer";

int HttpStatusOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK: return 200;
    case grpc::StatusCode::INVALID_ARGUMENT: return 400;
    case grpc::StatusCode::UNAUTHENTICATED: return 401;
    case grpc::StatusCode::NOT_FOUND: return 404;
    case grpc::StatusCode::CANCELLED: return 499;
    case grpc::StatusCode::UNIMPLEMENTED: return 501;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAVAILABLE: return 503;
    default: return 500;
  }
}

Result<grpc::ByteBuffer> Serialise(const GrpcInferRequest& request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  for (const Tensor& tensor : request.inputs) {
    TANDEM_TRY(CheckTensorData(tensor));
    auto& input = *message.add_inputs();
    input.set_name(tensor.name);
    input.set_datatype(std::string(DataTypeName(tensor.type)));
    for (const std::int64_t dim : tensor.shape) input.add_shape(dim);
    message.add_raw_input_contents(tensor.data.view.data(), tensor.data.size());
  }
  std::string bytes;
  if (!message.SerializeToString(&bytes)) return Invalid("the inputs of '{}' are too large for gRPC", request.model);
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// gRPC rounds a deadline up to whole milliseconds: for "do not wait at all" it must lie in the past.
gpr_timespec FromNow(nanoseconds time) {
  if (time <= nanoseconds(0)) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(time.count(), GPR_TIMESPAN));
}

}  // namespace

// One call under way; deleted when its tag comes back.
struct GrpcTransport::Call {
  RequestRecord record;
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

struct GrpcTransport::Parts {
  Parts(const GrpcTransportOptions& given, std::shared_ptr<grpc::Channel> made, std::vector<grpc::ByteBuffer> bodies,
        const Clock& time)
      : options(given), channel(std::move(made)), stub(channel), requests(std::move(bodies)), clock(time) {}

  // Constant after construction.
  const GrpcTransportOptions options;
  const std::shared_ptr<grpc::Channel> channel;  // Shared as grpc++ demands.
  grpc::GenericStub stub;
  const std::vector<grpc::ByteBuffer> requests;
  const Clock& clock;
  // The polling thread only.
  grpc::CompletionQueue queue;
  std::size_t outstanding = 0;
};

Result<std::unique_ptr<GrpcTransport>> GrpcTransport::Create(const GrpcTransportOptions& options,
                                                             const std::vector<GrpcInferRequest>& requests,
                                                             const Clock& clock) {
  std::vector<grpc::ByteBuffer> bodies;
  for (const GrpcInferRequest& request : requests) {
    TANDEM_ASSIGN(grpc::ByteBuffer body, Serialise(request));
    bodies.push_back(std::move(body));
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  const std::string target = HostAndPort(options.host, options.port);
  auto channel = grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(FromNow(options.connect_timeout))) {
    return Fail(ErrorCode::kUnavailable, "cannot connect to {} over gRPC", Excerpt(target));
  }
  auto parts = std::make_unique<Parts>(options, std::move(channel), std::move(bodies), clock);
  return std::unique_ptr<GrpcTransport>(new GrpcTransport(std::move(parts)));
}

GrpcTransport::GrpcTransport(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GrpcTransport::~GrpcTransport() {
  // Calls that are left end by their own deadline at the latest.
  parts_->queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (parts_->queue.Next(&tag, &ok)) delete static_cast<Call*>(tag);
}

void GrpcTransport::Send(std::size_t request, MonotonicTime scheduled) {
  auto call = std::make_unique<Call>();
  const MonotonicTime now = parts_->clock.Now();
  call->record = RequestRecord{.request = request, .scheduled = scheduled, .submitted = now, .sent = now};
  call->context.set_deadline(FromNow(parts_->options.request_timeout));
  call->reader = parts_->stub.PrepareUnaryCall(&call->context, kMethod, parts_->requests[request], &parts_->queue);
  call->reader->StartCall();
  Call* const tag = call.release();
  tag->reader->Finish(&tag->answer, &tag->status, tag);
  ++parts_->outstanding;
}

void GrpcTransport::Poll(MonotonicTime until, std::vector<RequestRecord>& finished) {
  gpr_timespec deadline = FromNow(until - parts_->clock.Now());
  void* tag = nullptr;
  bool ok = false;
  while (parts_->queue.AsyncNext(&tag, &ok, deadline) == grpc::CompletionQueue::GOT_EVENT) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    RequestRecord& record = call->record;
    record.done = parts_->clock.Now();
    record.first_byte = record.done;
    record.status = HttpStatusOf(call->status.error_code());
    record.bytes = call->answer.Length();
    if (call->status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) record.outcome = TransportOutcome::kTimedOut;
    finished.push_back(std::move(record));
    --parts_->outstanding;
    deadline = gpr_inf_past(GPR_CLOCK_MONOTONIC);
  }
}

std::size_t GrpcTransport::outstanding() const {
  return parts_->outstanding;
}

}  // namespace tandem::loadgen
