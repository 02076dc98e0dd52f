#include "server/grpc/generic_calls.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <grpc/grpc.h>
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

// How late a call may be given up.
constexpr std::chrono::milliseconds kLongestTick{1'000};
constexpr std::chrono::milliseconds kShortestTick{10};

gpr_timespec In(std::chrono::milliseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(time.count(), GPR_TIMESPAN));
}

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

  // gRPC computes the deadline from the client's timeout when the call comes, on a clock of its choice; what matters is
  // the time left.
  std::optional<std::chrono::nanoseconds> TimeLeft() const override {
    const gpr_timespec deadline = context_.raw_deadline();
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) return std::nullopt;
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    if (left.tv_sec > kFarAwaySeconds || left.tv_sec < -kFarAwaySeconds) return std::nullopt;
    return std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
  }

  // As HTTP/2 counts it: names, values and 32 bytes for each pair.
  std::size_t MetadataSize() const {
    std::size_t size = 0;
    for (const auto& [name, value] : context_.client_metadata()) size += name.size() + value.size() + 32;
    return size;
  }

  MonotonicTime MessageTime() const override { return message_time_; }

  void AddHeader(const std::string& name, const std::string& value) override {
    context_.AddInitialMetadata(name, value);
  }

  void AddTrailer(const std::string& name, const std::string& value) override {
    context_.AddTrailingMetadata(name, value);
  }

  void Pack(grpc_compression_algorithm algorithm) override { context_.set_compression_algorithm(algorithm); }

  void Read() override {
    Hold();
    stream_.Read(&message_, &read_);
  }

  void Write(const grpc::ByteBuffer& message) override {
    Hold();
    calls_.AwaitSent(*this);
    stream_.Write(message, grpc::WriteOptions(), &written_);
  }

  void WakeIn(std::chrono::milliseconds time) override {
    Hold();
    if (!alarm_) alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(&loop_.queue(), In(time), &wake_);
  }

  // The hold that finishing needs is there since the beginning.
  void Finish(const grpc::Status& status) override {
    finished_.store(true, std::memory_order_release);
    calls_.AwaitSent(*this);
    stream_.Finish(status, &sent_);
  }

  void Answer(const grpc::ByteBuffer& message) override {
    finished_.store(true, std::memory_order_release);
    calls_.AwaitSent(*this);
    stream_.WriteAndFinish(message, grpc::WriteOptions(), grpc::Status::OK, &sent_);
  }

  // Ends the call with that status, which gRPC 1.51 also tells the client. The handler hears of it as if that had gone.
  void GiveUp(const grpc::Status& status) {
    grpc_call_cancel_with_status(context_.c_call(), static_cast<grpc_status_code>(status.error_code()),
                                 status.error_message().c_str(), nullptr);
  }

 private:
  friend class GenericCalls;
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
    // What the handler did before it finished the call, maybe on another thread, comes before its end.
    (void)finished_.load(std::memory_order_acquire);
    GenericCalls& calls = calls_;
    const Share share = share_;
    delete this;
    calls.Leave(share);
  }

  void OnBegun(bool ok) {
    if (ok) {
      Arm(calls_, loop_);
      // For OnGone(), which comes from now on, and for the handler, until it finishes.
      Hold();
      Hold();
      auto handler = calls_.MakeHandler(*this);
      if (handler) {
        handler_ = *std::move(handler);
        calls_.AwaitMessage(*this);
        handler_->Start();
      } else {
        Finish(ToGrpcStatus(handler.error()));
      }
    }
    Release();
  }

  void OnRead(bool ok) {
    message_time_ = calls_.parts_.core.clock.Now();
    if (!std::exchange(heard_, true)) calls_.Heard(*this);
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
    calls_.Sent(*this);
    handler_->OnWritten(ok);
    Release();
  }

  void OnWake(bool /*ok*/) {
    handler_->OnWake();
    Release();
  }

  void OnGone(bool /*ok*/) {
    if (!std::exchange(heard_, true)) calls_.Heard(*this);
    if (context_.IsCancelled() && handler_ && !finished_.load(std::memory_order_relaxed)) handler_->OnGone();
    Release();
  }

  void OnSent(bool /*ok*/) {
    calls_.Sent(*this);
    Release();
  }

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
  MonotonicTime message_time_;
  std::unique_ptr<grpc::Alarm> alarm_;

  // Constant once the call has its handler.
  Share share_ = Share::kNone;

  // The loop's thread only.
  bool heard_ = false;

  // Guarded by GenericCalls::mu_.
  DueList<TakenCall>::Place silent_{*this};
  DueList<TakenCall>::Place sending_{*this};

  std::shared_ptr<CallHandler> handler_;  // Shared with those that drain long calls.
};

// Looks for calls that are late now and then, on one loop's thread. Guarded by GenericCalls::mu_, but for Done().
class GenericCalls::Tick final : public Operation {
 public:
  Tick(GenericCalls& calls, CompletionLoop& loop, std::chrono::milliseconds interval)
      : calls_(calls), loop_(loop), interval_(interval) {}

  void Begin() { alarm_.Set(&loop_.queue(), In(interval_), this); }
  void Cancel() { alarm_.Cancel(); }
  void Done(bool ok) override {
    if (ok) calls_.GiveUpLate();
  }

 private:
  GenericCalls& calls_;
  CompletionLoop& loop_;
  const std::chrono::milliseconds interval_;
  grpc::Alarm alarm_;
};

GenericCalls::GenericCalls(FrontEndParts& parts, Routes routes)
    : parts_(parts), routes_(std::move(routes)), service_(std::make_unique<grpc::AsyncGenericService>()) {}

GenericCalls::~GenericCalls() = default;

void GenericCalls::TakeCallsOn(CompletionLoop& loop) {
  {
    MutexLock lock(mu_);
    armed_ += kArmed;
    if (!tick_) {
      const auto& options = parts_.options;
      const auto often =
          std::min({options.first_message_timeout, options.open_first_message_timeout, options.answer_timeout}) / 4;
      tick_ = std::make_unique<Tick>(*this, loop, std::clamp(often, kShortestTick, kLongestTick));
      tick_->Begin();
    }
  }
  for (std::size_t i = 0; i < kArmed; ++i) TakenCall::Arm(*this, loop);
}

void GenericCalls::WaitUntilNone() {
  MutexLock lock(mu_);
  while (calls_ > 0) left_.Wait(mu_);
  // GiveUpLate() begins it under the lock, so there is no other after this one.
  draining_ = true;
  if (tick_) tick_->Cancel();
}

Result<std::shared_ptr<CallHandler>> GenericCalls::MakeHandler(TakenCall& call) {
  return Guarded([&]() -> Result<std::shared_ptr<CallHandler>> {
    TANDEM_TRY(CheckRoom());
    if (const std::size_t size = call.MetadataSize(), most = parts_.options.max_metadata_bytes; size > most) {
      return Fail(ErrorCode::kTooLarge, "the call's metadata has {} bytes; at most {} are taken", size, most);
    }
    const std::string& method = call.context_.method();
    const auto found = routes_.find(method);
    if (found == routes_.end()) {
      return Fail(ErrorCode::kUnsupported, "there is no method '{}' here", Excerpt(method));
    }
    const Route& route = found->second;
    if (route.open) {
      const Share share = route.lasting ? Share::kOpenLasting : Share::kOpen;
      TANDEM_TRY(TakeFrom(share));
      call.share_ = share;
    } else {
      TANDEM_TRY(Admit(call));
    }
    return route.make(call);
  });
}

Status GenericCalls::CheckRoom() {
  MutexLock lock(mu_);
  const std::size_t limit = parts_.options.max_calls;
  if (calls_ <= limit + armed_) return {};
  return Fail(ErrorCode::kUnavailable, "{} calls are under way, and there is no room for more", limit);
}

Status GenericCalls::TakeFrom(Share share) {
  const std::size_t limit =
      share == Share::kOpenLasting ? parts_.options.max_open_lasting_calls : parts_.options.max_open_calls;
  MutexLock lock(mu_);
  std::size_t& taken = taken_[std::to_underlying(share)];
  if (taken >= limit) {
    return Fail(ErrorCode::kUnavailable, "{} calls that need no token are under way, and there is no room for more",
                limit);
  }
  ++taken;
  return {};
}

Status GenericCalls::Admit(const Call& call) const {
  if (!parts_.options.allows || parts_.options.allows(call.Header("authorization").value_or(""))) return {};
  return Fail(ErrorCode::kUnauthenticated, "a valid bearer token is needed in the authorization header");
}

void GenericCalls::Enter() {
  MutexLock lock(mu_);
  ++calls_;
}

void GenericCalls::Leave(Share share) {
  MutexLock lock(mu_);
  if (share != Share::kNone) --taken_[std::to_underlying(share)];
  if (--calls_ == 0) left_.NotifyAll();
}

void GenericCalls::AwaitMessage(TakenCall& call) {
  const auto& options = parts_.options;
  const auto timeout = call.share_ == Share::kNone ? options.first_message_timeout : options.open_first_message_timeout;
  const MonotonicTime until = parts_.core.clock.Now() + timeout;
  {
    MutexLock lock(mu_);
    if (!draining_) {
      silent_.Add(call.silent_, until);
      return;
    }
  }
  call.GiveUp(ShuttingDown());
}

void GenericCalls::Heard(TakenCall& call) {
  MutexLock lock(mu_);
  silent_.Remove(call.silent_);
}

void GenericCalls::AwaitSent(TakenCall& call) {
  const MonotonicTime until = parts_.core.clock.Now() + parts_.options.answer_timeout;
  MutexLock lock(mu_);
  sending_.Add(call.sending_, until);
}

void GenericCalls::Sent(TakenCall& call) {
  MutexLock lock(mu_);
  sending_.Remove(call.sending_);
}

std::vector<GenericCalls::TakenCall*> GenericCalls::TakeHeld(DueList<TakenCall>& list, MonotonicTime until) {
  std::vector<TakenCall*> taken = list.Take(until);
  // Their end would have taken them off the list, so they are still there.
  for (TakenCall* call : taken) call->Hold();
  return taken;
}

void GenericCalls::GiveUpLate() {
  const MonotonicTime now = parts_.core.clock.Now();
  std::vector<TakenCall*> silent;
  std::vector<TakenCall*> unread;
  {
    MutexLock lock(mu_);
    silent = TakeHeld(silent_, now);
    unread = TakeHeld(sending_, now);
    if (!draining_) tick_->Begin();
  }
  GiveUp(silent, {grpc::StatusCode::DEADLINE_EXCEEDED, "the call's first message did not come in time"});
  GiveUp(unread, {grpc::StatusCode::DEADLINE_EXCEEDED, "the client did not take its answer in time"});
}

void GenericCalls::Drain() {
  std::vector<TakenCall*> silent;
  {
    MutexLock lock(mu_);
    draining_ = true;
    silent = TakeHeld(silent_, MonotonicTime::max());
  }
  GiveUp(silent, ShuttingDown());
}

void GenericCalls::GiveUp(const std::vector<TakenCall*>& calls, const grpc::Status& status) {
  for (TakenCall* call : calls) {
    call->GiveUp(status);
    call->Release();
  }
}

}  // namespace tandem::grpc_front
