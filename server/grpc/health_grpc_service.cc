#include "server/grpc/health_grpc_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>

#include "api/base/mutex.h"
#include "api/wire/json_text.h"
#include "api/wire/proto/health.grpc.pb.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/raw_message.h"

namespace tandem::grpc_front {
namespace {

namespace health = grpc::health::v1;
using Raw = grpc::ByteBuffer;
using Serving = health::HealthCheckResponse::ServingStatus;

// How late a watcher may hear of a change.
constexpr int kWatchIntervalMs = 200;

bool IsKnown(const std::string& service) {
  return service.empty() || service == "inference.GRPCInferenceService";
}

Serving StatusNow(const FrontEndParts& parts) {
  return parts.Serving() ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
}

// One Watch call: says the status, and again whenever it has changed. Owns itself until OnDone. As in InferStream, what
// to begin is decided under the lock, marked as under way, and begun outside.
class WatchCall final : public grpc::ServerWriteReactor<Raw>, public LongCall {
 public:
  explicit WatchCall(FrontEndParts& parts) : parts_(parts) {}

  static WatchCall* Start(FrontEndParts& parts, Raw& request) {
    const auto call = std::make_shared<WatchCall>(parts);
    call->self_ = call;
    health::HealthCheckRequest asked;
    const Status parsed = Guarded([&] { return TakeMessage(request, parts.options.max_message_bytes, asked); });
    if (parsed) {
      call->known_ = IsKnown(asked.service());
      parts.long_calls.Add(call);
      call->Change([](State&) {});
    } else {
      call->Finish(ToGrpcStatus(parsed));
    }
    return call.get();
  }

  void OnWriteDone(bool ok) override {
    Change([ok](State& s) { s.writing = false, s.gone |= !ok; });
  }
  void OnCancel() override {
    Change([](State& s) { s.gone = true; });
  }
  void Drain() override {
    Change([](State& s) { s.draining = true; });
  }
  void OnDone() override {
    parts_.long_calls.Remove(this);
    const std::shared_ptr<WatchCall> last = std::move(self_);
  }

 private:
  struct State {
    std::optional<Serving> said;
    bool writing = false;
    bool waiting = false;  // For the alarm.
    bool gone = false;
    bool draining = false;
    bool finished = false;
  };

  struct Next {
    bool write = false;
    bool wait = false;
    bool finish = false;
  };

  template <typename Apply>
  void Change(Apply apply) {
    Next next;
    {
      MutexLock lock(mu_);
      apply(state_);
      next = Decide();
    }
    if (next.write) StartWrite(&written_);
    if (next.wait) {
      alarm_.Set(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kWatchIntervalMs, GPR_TIMESPAN)),
                 [this](bool) { OnAlarm(); });
    }
    if (next.finish) Finish({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"});
  }

  // Not a lambda in Change: that would make a new Change of every Change.
  void OnAlarm() {
    Change([](State& s) { s.waiting = false; });
  }

  Next Decide() REQUIRES(mu_) {
    State& s = state_;
    Next next;
    const Serving now = known_ ? StatusNow(parts_) : health::HealthCheckResponse::SERVICE_UNKNOWN;
    if (!s.writing && !s.gone && !s.finished && s.said != now) {
      s.gone = !Pack(now);
      s.said = now;
      next.write = s.writing = !s.gone;
    }
    const bool last = s.gone || s.draining;
    if (!last && !s.waiting) next.wait = s.waiting = true;
    if (last && !s.writing && !s.waiting && !s.finished) next.finish = s.finished = true;
    return next;
  }

  bool Pack(Serving status) {
    return Guarded([&]() -> Status {
             health::HealthCheckResponse response;
             response.set_status(status);
             return PackMessage(response, written_);
           })
        .has_value();
  }

  // Constant after Start().
  FrontEndParts& parts_;
  bool known_ = false;
  std::shared_ptr<WatchCall> self_;  // Until OnDone.

  // Whoever has the write or the wait under way.
  Raw written_;
  grpc::Alarm alarm_;

  Mutex mu_;
  State state_ GUARDED_BY(mu_);
};

class HealthGrpcService final : public health::Health::WithRawCallbackMethod_Check<
                                    health::Health::WithRawCallbackMethod_Watch<health::Health::Service>> {
 public:
  explicit HealthGrpcService(FrontEndParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context, const Raw* request, Raw* answer) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpcStatus(Guarded([&]() -> Status {
      health::HealthCheckRequest asked;
      TANDEM_TRY(TakeMessage(const_cast<Raw&>(*request), parts_.options.max_message_bytes, asked));
      if (!IsKnown(asked.service())) {
        return Fail(ErrorCode::kNotFound, "service '{}' is not known here", Excerpt(asked.service()));
      }
      health::HealthCheckResponse response;
      response.set_status(StatusNow(parts_));
      return PackMessage(response, *answer);
    })));
    return reactor;
  }

  grpc::ServerWriteReactor<Raw>* Watch(grpc::CallbackServerContext*, const Raw* request) override {
    return WatchCall::Start(parts_, const_cast<Raw&>(*request));
  }

 private:
  FrontEndParts& parts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeHealthGrpcService(FrontEndParts& parts) {
  return std::make_unique<HealthGrpcService>(parts);
}

}  // namespace tandem::grpc_front
