#include "server/grpc/infer_calls.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "api/wire/grpc_infer.h"
#include "api/wire/slo_header.h"
#include "profiler/flight_events.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/large_message.h"
#include "server/grpc/raw_message.h"
#include "server/grpc/unary_call.h"

namespace tandem::grpc_front {
namespace {

std::optional<MonotonicTime> DeadlineOf(const Call& call, const Clock& clock) {
  const auto left = call.TimeLeft();
  if (!left) return std::nullopt;
  return clock.Now() + *left;
}

Result<std::optional<std::chrono::microseconds>> SloOf(const Call& call) {
  const auto header = call.Header("x-slo-ms");
  if (!header) return std::nullopt;
  return ParseSloHeader(*header);
}

bool WantsFinalFlag(const inference::ModelInferRequest& message) {
  const auto found = message.parameters().find("triton_enable_empty_final_response");
  return found != message.parameters().end() && found->second.bool_param();
}

// What is kept of a request for its answer.
struct Kept {
  std::string id;
  std::vector<RequestedOutput> outputs;
  bool final_flag = false;
  ByteBudget::Lease lease;
};

// `kept` is filled as far as the request is understood, for errors to carry.
Result<InferRequest> ReadRequest(FrontEndParts& parts, const Call& call, grpc::ByteBuffer& bytes, Kept& kept) {
  auto message = std::make_shared<inference::ModelInferRequest>();
  TANDEM_ASSIGN(kept.lease, TakeLargeMessage(*parts.budget, bytes, parts.options.max_message_bytes, *message));
  kept.id = message->id();
  kept.final_flag = WantsFinalFlag(*message);
  TANDEM_ASSIGN(InferRequest request, DecodeGrpcInfer(std::move(message)));
  request.arrival = call.MessageTime();
  request.deadline = DeadlineOf(call, parts.core.clock);
  TANDEM_ASSIGN(const auto slo, SloOf(call));
  if (slo) request.slo = std::min(*slo, request.slo.value_or(*slo));
  kept.outputs = request.outputs;
  request.number = parts.core.inference.NextNumber();
  return request;
}

// Answers up to this size have an eighth of the budget to themselves: clients that do not take large ones must not shut
// out the others.
constexpr std::size_t kSmallAnswer = std::size_t{64} << 10;

// What nearly fills the answer's message: its tensors, and the id, which is as long as the client likes.
std::size_t AnswerBytes(const InferResponse& response, std::span<const RequestedOutput> requested) {
  std::size_t bytes = response.id.size();
  for (std::size_t i = 0; i < response.outputs.size(); ++i) {
    if (i >= requested.size() || !requested[i].shared) bytes += response.outputs[i].data.size();
  }
  return bytes;
}

// An answer and what it has of the budget, until it is sent.
struct PackedAnswer {
  grpc::ByteBuffer bytes;
  ByteBudget::Lease lease;
};

// Leases what the answer will hold before it is packed, and as much again while it is: then it is there twice.
Result<ByteBudget::Lease> LeaseAnswer(ByteBudget& budget, const InferResponse& response,
                                      std::span<const RequestedOutput> requested) {
  const std::size_t bytes = AnswerBytes(response, requested);
  if (bytes <= kSmallAnswer) return budget.Take(2 * bytes);
  const std::size_t limit = budget.limit() - budget.limit() / 8;
  if (bytes > limit) {
    return Fail(ErrorCode::kTooLarge, "the answer has {} bytes; this server can send {}", bytes, limit);
  }
  return budget.TakeUpTo(limit, 2 * bytes);
}

// Hands over one answer, also when the work is dropped without one. Until then its request is being computed.
class OneAnswer {
 public:
  using Sink = std::move_only_function<void(Result<InferResponse>)>;

  OneAnswer(FrontEndParts& parts, Sink sink) : computing_(parts.computing), sink_(std::move(sink)) {
    computing_.fetch_add(1, std::memory_order_relaxed);
  }
  OneAnswer(OneAnswer&& other) noexcept : computing_(other.computing_), sink_(std::exchange(other.sink_, nullptr)) {}
  OneAnswer& operator=(OneAnswer&&) = delete;
  ~OneAnswer() {
    if (sink_) (*this)(Fail(ErrorCode::kInternal, "the request was given up because of an unexpected failure"));
  }
  void operator()(Result<InferResponse> response) {
    computing_.fetch_sub(1, std::memory_order_relaxed);
    std::exchange(sink_, nullptr)(std::move(response));
  }

 private:
  std::atomic<int>& computing_;
  Sink sink_;
};

void Infer(InferenceService& inference, InferRequest request, OneAnswer answer) {
  try {
    inference.Infer(std::move(request), std::move(answer));
  } catch (...) {
    // The answer was given when it was dropped.
  }
}

// One ModelInfer call. Answered on the thread that read it or on a dispatcher's.
class UnaryInfer final : public CallHandler {
 public:
  UnaryInfer(FrontEndParts& parts, Call& call) : parts_(parts), call_(call) {}

  void Start() override { call_.Read(); }

  void OnRead(bool /*ok*/, grpc::ByteBuffer& bytes) override {
    // A large message may have waited to be parsed.
    if (cancel_->cancelled()) return call_.Finish(grpc::Status::CANCELLED);
    if (const auto compression = CompressionOf(bytes); compression != GRPC_COMPRESS_NONE) call_.Pack(compression);
    auto request = Guarded([&]() -> Result<InferRequest> {
      TANDEM_ASSIGN(InferRequest read, ReadRequest(parts_, call_, bytes, kept_));
      if (read.number != 0) call_.AddHeader("tandem-request", RequestName(read.number));
      return read;
    });
    if (!request) {
      kept_.lease = {};
      return call_.Finish(ToGrpcStatus(request.error()));
    }
    request->cancel = cancel_;
    Infer(parts_.core.inference, *std::move(request),
          OneAnswer(parts_, [this](Result<InferResponse> response) { Answer(std::move(response)); }));
  }

  void OnGone() override { cancel_->Cancel(); }

 private:
  void Answer(Result<InferResponse> response) {
    const Status packed = Guarded([&]() -> Status {
      if (!response) return std::unexpected(std::move(response).error());
      TANDEM_ASSIGN(answer_.lease, LeaseAnswer(*parts_.answers, *response, kept_.outputs));
      inference::ModelInferResponse message;
      TANDEM_TRY(EncodeGrpcInfer(*response, kept_.outputs, message));
      return PackMessage(message, answer_.bytes);
    });
    answer_.lease.ReduceTo(answer_.bytes.Length());
    // Before the client knows: its next request must find the room.
    kept_.lease = {};
    // The lease stays until the call has ended, the bytes are gRPC's.
    grpc::ByteBuffer bytes;
    bytes.Swap(&answer_.bytes);
    EndCall(call_, packed, bytes);
  }

  // Constant after construction.
  FrontEndParts& parts_;
  Call& call_;
  // Shared with the work, which may outlive the call.
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  // Whoever reads, then whoever answers.
  Kept kept_;
  PackedAnswer answer_;
};

// One ModelStreamInfer call. Every message is answered by one, in the order in which they complete. It reads on only
// while few requests are unanswered and few bytes unsent, so a slow model or reader holds back the client.
//
// Each event changes the state under the lock, decides there what to begin, and begins it outside. What has been
// decided on is marked as under way, and the call does not end while anything is; so it is still there to begin it. A
// read that is under way does not count: its message is only taken in by a call that has not ended.
class InferStream final : public LongCall {
 public:
  InferStream(FrontEndParts& parts, Call& call) : parts_(parts), call_(call) {}
  ~InferStream() override { parts_.long_calls.Remove(this); }

  void Start() override {
    parts_.long_calls.Add(shared_from_this());
    Change([](State&) {});
  }

  void OnRead(bool ok, grpc::ByteBuffer& bytes) override {
    if (!ok) return Change([](State& s) { s.reading = false, s.half_closed = true; });
    const std::size_t size = bytes.Length();
    if (!Accept(size)) return;
    if (std::exchange(first_read_, false)) {
      if (const auto compression = CompressionOf(bytes); compression != GRPC_COMPRESS_NONE) call_.Pack(compression);
    }
    // Until this one is on its way no other is read: requests keep their order up to the queue.
    Submit(bytes, size);
    Change([](State& s) { s.reading = false; });
  }

  void OnWritten(bool ok) override {
    if (!ok) cancel_->Cancel();
    Change([ok](State& s) {
      s.writing = false;
      s.unsent_bytes -= std::exchange(s.writing_bytes, 0);
      s.writing_lease = {};
      s.gone |= !ok;
    });
  }

  void OnGone() override {
    cancel_->Cancel();
    Change([](State& s) { s.gone = true; });
  }

  void Drain() override {
    Change([](State& s) { s.draining = true; });
  }

 private:
  struct State {
    std::size_t unanswered = 0;
    std::size_t unanswered_bytes = 0;
    std::deque<PackedAnswer> outgoing;
    std::size_t unsent_bytes = 0;   // Of these and of the one that is being written:
    std::size_t writing_bytes = 0;  // so many.
    ByteBudget::Lease writing_lease;
    bool reading = false;
    int beginning_reads = 0;  // Decided on and not begun.
    bool writing = false;
    bool half_closed = false;
    bool gone = false;  // The client.
    bool draining = false;
    bool finished = false;
  };

  struct Next {
    bool read = false;
    std::optional<grpc::ByteBuffer> write;
    std::optional<grpc::Status> finish;
  };

  // Counts a message that has come; from then on the call does not end before it is answered. False: the call has ended
  // or is about to, and nothing of it may be used.
  bool Accept(std::size_t size) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (state_.finished || state_.gone) return false;
    state_.unanswered += 1;
    state_.unanswered_bytes += size;
    return true;
  }

  template <typename Apply>
  void Change(Apply apply) EXCLUDES(mu_) {
    Next next;
    {
      MutexLock lock(mu_);
      apply(state_);
      next = Decide();
    }
    // From here on only what was decided keeps the stream alive.
    if (next.write) call_.Write(*next.write);
    if (next.read) BeginRead();
    if (next.finish) call_.Finish(*next.finish);
  }

  // Not in Change: that would make a new Change of every Change.
  void BeginRead() {
    call_.Read();
    Change([](State& s) { s.beginning_reads -= 1; });
  }

  Next Decide() REQUIRES(mu_) {
    State& s = state_;
    Next next;
    if (s.finished) return next;
    if (s.gone) {
      s.outgoing.clear();
      s.unsent_bytes = s.writing_bytes;
    }
    if (!s.writing && !s.outgoing.empty()) {
      next.write.emplace().Swap(&s.outgoing.front().bytes);
      s.writing_lease = std::move(s.outgoing.front().lease);
      s.outgoing.pop_front();
      s.writing_bytes = next.write->Length();
      s.writing = true;
    }
    const bool last = s.half_closed || s.gone || s.draining;
    if (!last && !s.reading && MayReadOn(s)) {
      next.read = s.reading = true;
      s.beginning_reads += 1;
    }
    if (last && !s.writing && s.unanswered == 0 && s.beginning_reads == 0) {
      s.finished = true;
      next.finish = s.gone ? grpc::Status::CANCELLED : s.half_closed ? grpc::Status::OK : ShuttingDown();
    }
    return next;
  }

  [[nodiscard]] bool MayReadOn(const State& s) const {
    const GrpcOptions& options = parts_.options;
    return s.unanswered + s.outgoing.size() < options.max_outstanding_per_stream &&
           s.unanswered_bytes < options.max_message_bytes && s.unsent_bytes < options.max_unsent_bytes_per_stream;
  }

  void Submit(grpc::ByteBuffer& bytes, std::size_t size) {
    Kept kept;
    auto request = Guarded([&] { return ReadRequest(parts_, call_, bytes, kept); });
    if (!request) {
      kept.lease = {};
      return Reply(std::unexpected(std::move(request).error()), kept, size);
    }
    request->cancel = cancel_;
    Infer(parts_.core.inference, *std::move(request),
          OneAnswer(parts_, [this, kept = std::move(kept), size](Result<InferResponse> response) mutable {
            // Before the client knows: its next request must find the room.
            kept.lease = {};
            Reply(std::move(response), kept, size);
          }));
  }

  void Reply(Result<InferResponse> response, const Kept& kept, std::size_t size) {
    inference::ModelStreamInferResponse message;
    PackedAnswer answer;
    Status packed = Guarded([&]() -> Status {
      if (!response) return std::unexpected(std::move(response).error());
      TANDEM_ASSIGN(answer.lease, LeaseAnswer(*parts_.answers, *response, kept.outputs));
      TANDEM_TRY(EncodeGrpcInfer(*response, kept.outputs, *message.mutable_infer_response()));
      if (kept.final_flag) SetFinalFlag(message);
      return PackMessage(message, answer.bytes);
    });
    if (!packed) {
      packed = Guarded([&]() -> Status {
        message.Clear();
        message.set_error_message(ToGrpcStatus(packed).error_message());
        message.mutable_infer_response()->set_id(kept.id);
        if (kept.final_flag) SetFinalFlag(message);
        return PackMessage(message, answer.bytes);
      });
    }
    message.Clear();
    answer.lease.ReduceTo(answer.bytes.Length());
    Change([&](State& s) {
      s.unanswered -= 1;
      s.unanswered_bytes -= size;
      // Without memory even for an error nothing can be said.
      s.gone |= !packed.has_value();
      s.unsent_bytes += answer.bytes.Length();
      s.outgoing.push_back(std::move(answer));
    });
  }

  static void SetFinalFlag(inference::ModelStreamInferResponse& message) {
    (*message.mutable_infer_response()->mutable_parameters())["triton_final_response"].set_bool_param(true);
  }

  // Constant after construction.
  FrontEndParts& parts_;
  Call& call_;
  // Shared with the work; one for all requests of the stream, which go together.
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  bool first_read_ = true;  // Whoever has the read under way.

  Mutex mu_;
  State state_ GUARDED_BY(mu_);
};

}  // namespace

std::shared_ptr<CallHandler> MakeInfer(FrontEndParts& parts, Call& call) {
  return std::make_shared<UnaryInfer>(parts, call);
}

std::shared_ptr<CallHandler> MakeInferStream(FrontEndParts& parts, Call& call) {
  return std::make_shared<InferStream>(parts, call);
}

}  // namespace tandem::grpc_front
