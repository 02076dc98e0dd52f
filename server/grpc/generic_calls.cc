#include "server/grpc/generic_calls.h"

#include <atomic>
#include <utility>

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>

#include "api/wire/json_text.h"
#include "server/grpc/completion_loop.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/raw_message.h"

namespace tandem::grpc_front {
namespace {

// How many calls may come at once before one waits until the loop has taken note of the others.
constexpr std::size_t kArmed = 16;

// Deadlines further away than this are none; it also keeps the arithmetic in range.
constexpr std::int64_t kFarAwaySeconds = 365 * 24 * 3600;

// What takes longer than about a millisecond to parse.
constexpr std::size_t kLargeMessage = std::size_t{1} << 20;
// The same when it has to be unpacked, which may make it a thousand times as large.
constexpr std::size_t kLargePackedMessage = std::size_t{16} << 10;

bool IsLarge(grpc::ByteBuffer& message) {
  const std::size_t size = message.Length();
  return size > kLargeMessage || (size > kLargePackedMessage && CompressionOf(message) != GRPC_COMPRESS_NONE);
}

}  // namespace

// One call, from before a client begins it. Owns itself: it goes when nothing that was begun is still to come back, on
// the thread that noticed.
class GenericCalls::TakenCall final : public Call {
 public:
  TakenCall(GenericCalls& calls, CompletionLoop& loop) : calls_(calls), loop_(loop) { calls_.Enter(); }
  ~TakenCall() = default;

  // Waits for a client on `loop`.
  static void Arm(GenericCalls& calls, CompletionLoop& loop) {
    auto* call = new TakenCall(calls, loop);
    call->context_.AsyncNotifyWhenDone(&call->gone_);
    calls.service_->RequestCall(&call->context_, &call->stream_, &loop.queue(), &loop.queue(), &call->begun_);
  }

  std::optional<std::string_view> Header(std::string_view name) const override {
    const auto& metadata = context_.client_metadata();
    const auto found = metadata.find(grpc::string_ref(name.data(), name.size()));
    if (found == metadata.end()) return std::nullopt;
    return std::string_view(found->second.data(), found->second.size());
  }

  // gRPC gives the deadline on the wall clock, computed from the client's timeout when the call came, so what matters
  // is the time left.
  std::optional<std::chrono::nanoseconds> TimeLeft() const override {
    const gpr_timespec deadline = context_.raw_deadline();
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    if (left.tv_sec > kFarAwaySeconds || left.tv_sec < -kFarAwaySeconds) return std::nullopt;
    return std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
  }

  void Pack(grpc_compression_algorithm algorithm) override { context_.set_compression_algorithm(algorithm); }

  void Read() override {
    Hold();
    stream_.Read(&message_, &read_);
  }

  void Write(const grpc::ByteBuffer& message) override {
    Hold();
    stream_.Write(message, grpc::WriteOptions(), &written_);
  }

  void WakeIn(std::chrono::milliseconds time) override {
    Hold();
    if (!alarm_) alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(&loop_.queue(),
                gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(time.count(), GPR_TIMESPAN)), &wake_);
  }

  // The hold that finishing needs is there since the beginning.
  void Finish(const grpc::Status& status) override {
    finished_.store(true, std::memory_order_relaxed);
    stream_.Finish(status, &sent_);
  }

  void Answer(const grpc::ByteBuffer& message) override {
    finished_.store(true, std::memory_order_relaxed);
    stream_.WriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK, &sent_);
  }

 private:
  using Step = void (TakenCall::*)(bool ok);

  // An operation of this call.
  class Tag final : public Operation {
   public:
    Tag(TakenCall& call, Step step) : call_(call), step_(step) {}
    void Done(bool ok) override { (call_.*step_)(ok); }

   private:
    TakenCall& call_;
    const Step step_;
  };

  void Hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  void Release() {
    if (holds_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    GenericCalls& calls = calls_;
    delete this;
    calls.Leave();
  }

  void OnBegun(bool ok) {
    if (ok) {
      Arm(calls_, loop_);
      // For OnGone(), which comes from now on, and for the handler, until it finishes.
      Hold();
      Hold();
      auto handler = calls_.MakeHandler(context_.method(), *this);
      if (handler) {
        handler_ = *std::move(handler);
        handler_->Start();
      } else {
        Finish(ToGrpcStatus(handler.error()));
      }
    }
    Release();
  }

  void OnRead(bool ok) {
    if (!ok) {
      message_.Clear();
    } else if (IsLarge(message_)) {
      return calls_.parts_.core.bulk.Do([this] { HandleMessage(true); });
    }
    HandleMessage(ok);
  }

  void HandleMessage(bool ok) {
    grpc::ByteBuffer message;
    message.Swap(&message_);
    handler_->OnRead(ok, message);
    Release();
  }

  void OnWritten(bool ok) {
    handler_->OnWritten(ok);
    Release();
  }

  void OnWake(bool /*ok*/) {
    handler_->OnWake();
    Release();
  }

  void OnGone(bool /*ok*/) {
    if (context_.IsCancelled() && handler_ && !finished_.load(std::memory_order_relaxed)) handler_->OnGone();
    Release();
  }

  void OnSent(bool /*ok*/) { Release(); }

  // Constant after construction.
  GenericCalls& calls_;
  CompletionLoop& loop_;
  Tag begun_{*this, &TakenCall::OnBegun};
  Tag read_{*this, &TakenCall::OnRead};
  Tag written_{*this, &TakenCall::OnWritten};
  Tag wake_{*this, &TakenCall::OnWake};
  Tag gone_{*this, &TakenCall::OnGone};
  Tag sent_{*this, &TakenCall::OnSent};

  std::atomic<int> holds_{1};
  std::atomic<bool> finished_{false};

  // gRPC's, or of whoever has the read or the wait under way.
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer message_;
  std::unique_ptr<grpc::Alarm> alarm_;

  std::shared_ptr<CallHandler> handler_;  // Shared with those that drain long calls.
};

GenericCalls::GenericCalls(FrontEndParts& parts, Routes routes)
    : parts_(parts), routes_(std::move(routes)), service_(std::make_unique<grpc::AsyncGenericService>()) {}

GenericCalls::~GenericCalls() = default;

void GenericCalls::TakeCallsOn(CompletionLoop& loop) {
  {
    MutexLock lock(mu_);
    armed_ += kArmed;
  }
  for (std::size_t i = 0; i < kArmed; ++i) TakenCall::Arm(*this, loop);
}

void GenericCalls::WaitUntilNone() {
  MutexLock lock(mu_);
  while (calls_ > 0) left_.Wait(mu_);
}

Result<std::shared_ptr<CallHandler>> GenericCalls::MakeHandler(const std::string& method, Call& call) {
  return Guarded([&]() -> Result<std::shared_ptr<CallHandler>> {
    TANDEM_TRY(CheckRoom());
    const auto route = routes_.find(method);
    if (route == routes_.end()) {
      return Fail(ErrorCode::kUnsupported, "there is no method '{}' here", Excerpt(method));
    }
    if (!route->second.open) TANDEM_TRY(Admit(call));
    return route->second.make(call);
  });
}

Status GenericCalls::CheckRoom() {
  MutexLock lock(mu_);
  const std::size_t limit = parts_.options.max_calls;
  if (calls_ - armed_ <= limit) return {};
  return Fail(ErrorCode::kUnavailable, "{} calls are under way, and there is no room for more", limit);
}

Status GenericCalls::Admit(const Call& call) const {
  if (!parts_.options.allows || parts_.options.allows(call.Header("authorization").value_or(""))) return {};
  return Fail(ErrorCode::kUnauthenticated, "a valid bearer token is needed in the authorization header");
}

void GenericCalls::Enter() {
  MutexLock lock(mu_);
  ++calls_;
}

void GenericCalls::Leave() {
  MutexLock lock(mu_);
  if (--calls_ == 0) left_.NotifyAll();
}

}  // namespace tandem::grpc_front
