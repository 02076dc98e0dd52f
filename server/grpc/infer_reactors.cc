#include "server/grpc/infer_reactors.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include "api/base/mutex.h"
#include "api/wire/grpc_infer.h"
#include "server/grpc/control_messages.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/raw_message.h"

namespace tandem::grpc_front {
namespace {

// Deadlines further away than this are none; it also keeps the arithmetic in range.
constexpr std::int64_t kFarAwaySeconds = 365 * 24 * 3600;

// The call's deadline on our clock. gRPC gives it on the wall clock, computed from the client's timeout when the call
// came, so what matters is the time left.
std::optional<MonotonicTime> DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  const gpr_timespec deadline = context.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec > kFarAwaySeconds || left.tv_sec < -kFarAwaySeconds) return std::nullopt;
  return clock.Now() + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

Result<std::optional<std::chrono::microseconds>> SloOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto header = metadata.find("x-slo-ms");
  if (header == metadata.end()) return std::nullopt;
  return ParseSloHeader({header->second.data(), header->second.size()});
}

bool WantsFinalFlag(const inference::ModelInferRequest& message) {
  const auto found = message.parameters().find("triton_enable_empty_final_response");
  return found != message.parameters().end() && found->second.bool_param();
}

// A request with what is kept of it for the answer.
struct Incoming {
  InferRequest request;
  std::string id;
  std::vector<RequestedOutput> outputs;
  bool final_flag = false;
  ByteBudget::Lease lease;
};

// `id` is set as soon as it is known, for errors to carry.
Result<Incoming> ReadRequest(FrontEndParts& parts, const grpc::CallbackServerContext& context, grpc::ByteBuffer& bytes,
                             std::string& id) {
  Incoming incoming;
  const MonotonicTime arrival = parts.core.clock.Now();
  const bool packed = CompressionOf(bytes) != GRPC_COMPRESS_NONE;
  TANDEM_ASSIGN(incoming.lease, parts.budget->Take(bytes.Length()));
  auto message = std::make_shared<inference::ModelInferRequest>();
  TANDEM_TRY(TakeMessage(bytes, parts.options.max_message_bytes, *message));
  id = message->id();
  if (packed) {
    TANDEM_ASSIGN(incoming.lease, parts.budget->Take(message->ByteSizeLong()));
  }
  incoming.final_flag = WantsFinalFlag(*message);
  TANDEM_ASSIGN(incoming.request, DecodeGrpcInfer(std::move(message)));
  incoming.request.arrival = arrival;
  incoming.request.deadline = DeadlineOf(context, parts.core.clock);
  TANDEM_ASSIGN(const auto slo, SloOf(context));
  if (slo) incoming.request.slo = std::min(*slo, incoming.request.slo.value_or(*slo));
  incoming.id = incoming.request.id;
  incoming.outputs = incoming.request.outputs;
  return incoming;
}

// Hands over one answer, also when the work is dropped without one.
class OneAnswer {
 public:
  using Sink = std::move_only_function<void(Result<InferResponse>)>;

  explicit OneAnswer(Sink sink) : sink_(std::move(sink)) {}
  OneAnswer(OneAnswer&& other) noexcept : sink_(std::exchange(other.sink_, nullptr)) {}
  OneAnswer& operator=(OneAnswer&&) = delete;
  ~OneAnswer() {
    if (sink_) sink_(Fail(ErrorCode::kInternal, "the request was given up because of an unexpected failure"));
  }
  void operator()(Result<InferResponse> response) { std::exchange(sink_, nullptr)(std::move(response)); }

 private:
  Sink sink_;
};

void Infer(InferenceService& inference, InferRequest request, OneAnswer answer) {
  try {
    inference.Infer(std::move(request), std::move(answer));
  } catch (...) {
    // The answer was given when it was dropped.
  }
}

// One ModelInfer call. Made on a gRPC thread; answered there or on a dispatcher's; deletes itself.
class UnaryInfer final : public grpc::ServerUnaryReactor {
 public:
  UnaryInfer(FrontEndParts& parts, grpc::ByteBuffer& answer) : parts_(parts), answer_(answer) {}

  void Start(grpc::CallbackServerContext& context, grpc::ByteBuffer& bytes) {
    if (const auto compression = CompressionOf(bytes); compression != GRPC_COMPRESS_NONE) {
      context.set_compression_algorithm(compression);
    }
    std::string id;
    auto incoming = Guarded([&] { return ReadRequest(parts_, context, bytes, id); });
    if (!incoming) return Finish(ToGrpcStatus(incoming.error()));
    outputs_ = std::move(incoming->outputs);
    lease_ = std::move(incoming->lease);
    incoming->request.cancel = cancel_;
    Infer(parts_.core.inference, std::move(incoming->request),
          OneAnswer([this](Result<InferResponse> response) { Answer(std::move(response)); }));
  }

  void OnCancel() override { cancel_->Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Answer(Result<InferResponse> response) {
    const Status packed = Guarded([&]() -> Status {
      if (!response) return std::unexpected(std::move(response).error());
      inference::ModelInferResponse message;
      TANDEM_TRY(EncodeGrpcInfer(*response, outputs_, message));
      return PackMessage(message, answer_);
    });
    // Before the client knows: its next request must find the room.
    lease_ = {};
    Finish(ToGrpcStatus(packed));
  }

  // Constant after Start().
  FrontEndParts& parts_;
  grpc::ByteBuffer& answer_;
  std::vector<RequestedOutput> outputs_;
  ByteBudget::Lease lease_;
  // Shared with the work, which may outlive the call.
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
};

// One ModelStreamInfer call. Every message is answered by one, in the order in which they complete. It reads on only
// while few enough requests are unanswered, so a slow model or reader holds back the client. Owns itself until OnDone.
//
// Each event changes the state under the lock, decides there what to begin, and begins it outside. What has been
// decided on is marked as under way, and the call does not end while anything is; so it is still there to begin it.
class InferStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>, public LongCall {
 public:
  InferStream(FrontEndParts& parts, grpc::CallbackServerContext& context) : parts_(parts), context_(context) {}

  static InferStream* Start(FrontEndParts& parts, grpc::CallbackServerContext& context, const Status& admitted) {
    const auto stream = std::make_shared<InferStream>(parts, context);
    stream->self_ = stream;
    if (admitted) {
      parts.long_calls.Add(stream);
      stream->Change([](State&) {});
    } else {
      stream->Finish(ToGrpcStatus(admitted));
    }
    return stream.get();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Change([](State& s) { s.reading = false, s.half_closed = true; });
    grpc::ByteBuffer bytes;
    bytes.Swap(&read_);
    const std::size_t size = bytes.Length();
    if (std::exchange(first_read_, false)) {
      if (const auto compression = CompressionOf(bytes); compression != GRPC_COMPRESS_NONE) {
        context_.set_compression_algorithm(compression);
      }
    }
    // Until this one is on its way no other is read: requests keep their order up to the queue.
    Change([size](State& s) { s.unanswered += 1, s.unanswered_bytes += size; });
    Submit(bytes, size);
    Change([](State& s) { s.reading = false; });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) cancel_->Cancel();
    Change([ok](State& s) { s.writing = false, s.gone |= !ok; });
  }

  void OnCancel() override {
    cancel_->Cancel();
    Change([](State& s) { s.gone = true; });
  }

  void Drain() override {
    Change([](State& s) { s.draining = true; });
  }

  void OnDone() override {
    parts_.long_calls.Remove(this);
    const std::shared_ptr<InferStream> last = std::move(self_);
  }

 private:
  struct State {
    std::size_t unanswered = 0;
    std::size_t unanswered_bytes = 0;
    std::deque<grpc::ByteBuffer> outgoing;
    bool reading = false;
    bool writing = false;
    bool half_closed = false;
    bool gone = false;  // The client.
    bool draining = false;
    bool finished = false;
  };

  struct Next {
    bool read = false;
    bool write = false;
    std::optional<grpc::Status> finish;
  };

  template <typename Apply>
  void Change(Apply apply) {
    Next next;
    {
      MutexLock lock(mu_);
      apply(state_);
      next = Decide();
    }
    // From here on only what was decided keeps the stream alive.
    if (next.write) StartWrite(&written_);
    if (next.read) StartRead(&read_);
    if (next.finish) Finish(*next.finish);
  }

  Next Decide() REQUIRES(mu_) {
    State& s = state_;
    Next next;
    if (s.gone) s.outgoing.clear();
    if (!s.writing && !s.outgoing.empty()) {
      written_.Swap(&s.outgoing.front());
      s.outgoing.pop_front();
      next.write = s.writing = true;
    }
    const bool last = s.half_closed || s.gone || s.draining;
    const std::size_t pending = s.unanswered + s.outgoing.size();
    if (!last && !s.reading && pending < parts_.options.max_outstanding_per_stream &&
        s.unanswered_bytes < parts_.options.max_message_bytes) {
      next.read = s.reading = true;
    }
    if (last && !s.finished && !s.writing && s.unanswered == 0) {
      s.finished = true;
      next.finish = s.gone          ? grpc::Status::CANCELLED
                    : s.half_closed ? grpc::Status::OK
                                    : ToGrpcStatus(Error{ErrorCode::kUnavailable, "the server is shutting down"});
    }
    return next;
  }

  void Submit(grpc::ByteBuffer& bytes, std::size_t size) {
    std::string id;
    auto incoming = Guarded([&] { return ReadRequest(parts_, context_, bytes, id); });
    if (!incoming) return Reply(std::unexpected(std::move(incoming).error()), Incoming{.id = std::move(id)}, size);
    incoming->request.cancel = cancel_;
    InferRequest request = std::move(incoming->request);
    Infer(parts_.core.inference, std::move(request),
          OneAnswer([this, kept = *std::move(incoming), size](Result<InferResponse> response) mutable {
            // Before the client knows: its next request must find the room.
            kept.lease = {};
            Reply(std::move(response), kept, size);
          }));
  }

  void Reply(Result<InferResponse> response, const Incoming& kept, std::size_t size) {
    inference::ModelStreamInferResponse message;
    grpc::ByteBuffer bytes;
    Status packed = Guarded([&]() -> Status {
      if (!response) return std::unexpected(std::move(response).error());
      TANDEM_TRY(EncodeGrpcInfer(*response, kept.outputs, *message.mutable_infer_response()));
      if (kept.final_flag) SetFinalFlag(message);
      return PackMessage(message, bytes);
    });
    if (!packed) {
      packed = Guarded([&]() -> Status {
        message.Clear();
        message.set_error_message(ToGrpcStatus(packed).error_message());
        message.mutable_infer_response()->set_id(kept.id);
        if (kept.final_flag) SetFinalFlag(message);
        return PackMessage(message, bytes);
      });
    }
    Change([&](State& s) {
      s.unanswered -= 1;
      s.unanswered_bytes -= size;
      // Without memory even for an error nothing can be said.
      s.gone |= !packed.has_value();
      s.outgoing.push_back(std::move(bytes));
    });
  }

  static void SetFinalFlag(inference::ModelStreamInferResponse& message) {
    (*message.mutable_infer_response()->mutable_parameters())["triton_final_response"].set_bool_param(true);
  }

  // Constant after construction.
  FrontEndParts& parts_;
  grpc::CallbackServerContext& context_;
  // Shared with the work; one for all requests of the stream, which go together.
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  std::shared_ptr<InferStream> self_;  // Until OnDone.

  // Whoever has the read or the write under way.
  grpc::ByteBuffer read_;
  grpc::ByteBuffer written_;
  bool first_read_ = true;

  Mutex mu_;
  State state_ GUARDED_BY(mu_);
};

}  // namespace

grpc::ServerUnaryReactor* StartInfer(FrontEndParts& parts, grpc::CallbackServerContext& context,
                                     grpc::ByteBuffer& request, grpc::ByteBuffer& answer) {
  auto* call = new UnaryInfer(parts, answer);
  call->Start(context, request);
  return call;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartInferStream(FrontEndParts& parts,
                                                                              grpc::CallbackServerContext& context,
                                                                              const Status& admitted) {
  return InferStream::Start(parts, context, admitted);
}

}  // namespace tandem::grpc_front
