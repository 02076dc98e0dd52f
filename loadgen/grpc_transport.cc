#include "loadgen/grpc_transport.h"

#include <ctime>
#include <deque>
#include <thread>
#include <utility>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <pthread.h>

#include "api/base/mutex.h"
#include "loadgen/grpc_channel.h"
#include "loadgen/grpc_message.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr const char* kMethod = "/inference.GRPCInferenceService/ModelInfer";

int HttpStatusOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK: return 200;
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::INVALID_ARGUMENT: return 400;
    case grpc::StatusCode::UNAUTHENTICATED: return 401;
    case grpc::StatusCode::PERMISSION_DENIED: return 403;
    case grpc::StatusCode::NOT_FOUND: return 404;
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ABORTED: return 409;
    case grpc::StatusCode::CANCELLED: return 499;
    case grpc::StatusCode::UNIMPLEMENTED: return 501;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::UNAVAILABLE: return 503;
    default: return 500;
  }
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// A request that is ready to go, many times.
struct Prepared {
  grpc::ByteBuffer message;
  std::vector<std::pair<std::string, std::string>> metadata;
  bool keep_body = false;
};

}  // namespace

// One call under way, in a list of all of them.
struct GrpcTransport::Call {
  RequestRecord record;
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  Call* previous = nullptr;
  Call* next = nullptr;
};

// A call that has come to its end, and when.
struct GrpcTransport::Arrival {
  Call* call;
  MonotonicTime at;
};

// gRPC wakes a thread that waits at its queue on whole milliseconds, too late for an open loop. So the caller's thread
// waits at a condition instead, and the listener for answers. Measured at 5,000 calls a second on two cores: the median
// send is 24 µs late (p99 0.1 ms), against 390 µs (1.9 ms) with one thread at the queue, and 55 µs when that one is
// woken in time by an event of ours. A closed loop is about as fast as with one thread.
struct GrpcTransport::Parts {
  Parts(const GrpcTransportOptions& given, const std::vector<std::shared_ptr<grpc::Channel>>& channels,
        std::vector<Prepared> prepared, const Clock& time)
      : timeout(given.request_timeout), most_calls(given.max_calls), requests(std::move(prepared)), clock(time) {
    for (const auto& channel : channels) stubs.emplace_back(channel);
    listener = std::thread([this] { Listen(); });
  }

  void Listen();
  // Begins a call whose record says when it was submitted.
  void Begin(RequestRecord record, MonotonicTime now);
  // Begins what waits, as far as there is room; what has waited too long is finished.
  void BeginWaiting(std::vector<RequestRecord>& finished);
  void Link(Call* call);
  void Unlink(Call* call);
  void Judge(Call& call) const;

  // Constant after construction. The queue is thread-safe.
  const nanoseconds timeout;
  const std::size_t most_calls;
  const std::vector<Prepared> requests;
  const Clock& clock;
  grpc::CompletionQueue queue;
  std::thread listener;

  // The caller's thread only.
  std::vector<grpc::GenericStub> stubs;  // One for each channel.
  std::size_t next_stub = 0;
  Call* calls = nullptr;  // Owned; the first of all that are under way.
  std::size_t under_way = 0;
  std::deque<RequestRecord> waiting_calls;  // In the order in which they were submitted.
  std::vector<Arrival> taken;

  Mutex mu;
  CondVar wake;
  bool asleep GUARDED_BY(mu) = false;
  std::vector<Arrival> arrived GUARDED_BY(mu);
};

void GrpcTransport::Parts::Listen() {
  void* tag = nullptr;
  bool ok = false;
  while (queue.Next(&tag, &ok)) {
    const MonotonicTime now = clock.Now();
    MutexLock lock(mu);
    arrived.push_back({.call = static_cast<Call*>(tag), .at = now});
    if (std::exchange(asleep, false)) wake.NotifyOne();
  }
}

void GrpcTransport::Parts::Begin(RequestRecord record, MonotonicTime now) {
  const Prepared& prepared = requests[record.request];
  auto* const call = new Call;
  call->record = std::move(record);
  call->record.sent = now;
  call->context.set_deadline(FromNow(call->record.submitted + timeout - now));
  for (const auto& [name, value] : prepared.metadata) call->context.AddMetadata(name, value);
  grpc::GenericStub& stub = stubs[next_stub];
  next_stub = (next_stub + 1) % stubs.size();
  call->reader = stub.PrepareUnaryCall(&call->context, kMethod, prepared.message, &queue);
  Link(call);
  call->reader->StartCall();
  call->reader->Finish(&call->answer, &call->status, call);
}

void GrpcTransport::Parts::BeginWaiting(std::vector<RequestRecord>& finished) {
  while (!waiting_calls.empty() && under_way < most_calls) {
    RequestRecord record = std::move(waiting_calls.front());
    waiting_calls.pop_front();
    const MonotonicTime now = clock.Now();
    if (now - record.submitted < timeout) {
      Begin(std::move(record), now);
    } else {
      record.done = now;
      record.outcome = TransportOutcome::kTimedOut;
      finished.push_back(std::move(record));
    }
  }
}

void GrpcTransport::Parts::Link(Call* call) {
  call->next = calls;
  if (calls != nullptr) calls->previous = call;
  calls = call;
  ++under_way;
}

void GrpcTransport::Parts::Unlink(Call* call) {
  if (call->next != nullptr) call->next->previous = call->previous;
  (call->previous != nullptr ? call->previous->next : calls) = call->next;
  --under_way;
}

// gRPC gives a status of its own making to a call that failed on the way. Only its text tells that from the server's.
void GrpcTransport::Parts::Judge(Call& call) const {
  RequestRecord& record = call.record;
  record.first_byte = record.done;
  record.bytes = call.answer.Length();
  if (requests[record.request].keep_body) record.body = BytesOf(call.answer);
  const grpc::StatusCode code = call.status.error_code();
  const bool by_server =
      call.status.ok() || call.context.debug_error_string().find("received from peer") != std::string::npos;
  if (by_server && !(code == grpc::StatusCode::DEADLINE_EXCEEDED && record.done - record.submitted >= timeout)) {
    record.status = HttpStatusOf(code);
    return;
  }
  record.first_byte = {};
  switch (code) {
    case grpc::StatusCode::DEADLINE_EXCEEDED: record.outcome = TransportOutcome::kTimedOut; break;
    case grpc::StatusCode::UNAVAILABLE:
      record.outcome = call.status.error_message().find("failed to connect") != std::string::npos
                           ? TransportOutcome::kConnectFailed
                           : TransportOutcome::kConnectionLost;
      break;
    case grpc::StatusCode::CANCELLED: record.outcome = TransportOutcome::kConnectionLost; break;
    default: record.outcome = TransportOutcome::kMalformed; break;
  }
}

Result<std::unique_ptr<GrpcTransport>> GrpcTransport::Create(const GrpcTransportOptions& options,
                                                             const std::vector<GrpcInferRequest>& requests,
                                                             const Clock& clock) {
  if (options.request_timeout <= nanoseconds(0)) return Invalid("the request timeout must be above 0");
  if (options.max_calls < 1) return Invalid("calls at once must be at least 1, got 0");
  std::vector<Prepared> prepared;
  for (const GrpcInferRequest& request : requests) {
    TANDEM_ASSIGN(const std::string bytes, SerialiseInferRequest(request));
    TANDEM_TRY(CheckMetadata(request.metadata));
    const grpc::Slice slice(bytes);
    prepared.push_back(
        {.message = grpc::ByteBuffer(&slice, 1), .metadata = request.metadata, .keep_body = request.keep_body});
  }
  TANDEM_ASSIGN(const auto channels, OpenChannels(options));
  auto parts = std::make_unique<Parts>(options, channels, std::move(prepared), clock);
  return std::unique_ptr<GrpcTransport>(new GrpcTransport(std::move(parts)));
}

GrpcTransport::GrpcTransport(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

GrpcTransport::~GrpcTransport() {
  for (Call* call = parts_->calls; call != nullptr; call = call->next) call->context.TryCancel();
  parts_->queue.Shutdown();
  parts_->listener.join();
  while (Call* const call = parts_->calls) {
    parts_->Unlink(call);
    delete call;
  }
}

void GrpcTransport::Send(std::size_t request, MonotonicTime scheduled) {
  const MonotonicTime now = parts_->clock.Now();
  RequestRecord record{.request = request, .scheduled = scheduled, .submitted = now};
  if (parts_->under_way < parts_->most_calls) {
    parts_->Begin(std::move(record), now);
  } else {
    record.queued = true;
    parts_->waiting_calls.push_back(std::move(record));
  }
}

void GrpcTransport::Poll(MonotonicTime until, std::vector<RequestRecord>& finished) {
  Parts& parts = *parts_;
  {
    MutexLock lock(parts.mu);
    const nanoseconds wait = until - parts.clock.Now();
    if (parts.arrived.empty() && wait > nanoseconds(0)) {
      parts.asleep = true;
      // A wake-up for nothing is no harm: the caller asks again.
      (void)parts.wake.WaitFor(parts.mu, wait);
      parts.asleep = false;
    }
    parts.taken.swap(parts.arrived);
  }
  for (const auto& [call, at] : parts.taken) {
    call->record.done = at;
    parts.Judge(*call);
    finished.push_back(std::move(call->record));
    parts.Unlink(call);
    delete call;
  }
  parts.taken.clear();
  parts.BeginWaiting(finished);
}

std::size_t GrpcTransport::outstanding() const {
  return parts_->under_way + parts_->waiting_calls.size();
}

nanoseconds GrpcTransport::OwnCpuTime() const {
  clockid_t clock{};
  timespec time{};
  if (pthread_getcpuclockid(parts_->listener.native_handle(), &clock) != 0 || clock_gettime(clock, &time) != 0) {
    return nanoseconds(0);
  }
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace tandem::loadgen
