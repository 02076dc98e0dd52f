#include "server/grpc/health_routes.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/base/mutex.h"
#include "api/wire/json_text.h"
#include "api/wire/proto/health.pb.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/raw_message.h"
#include "server/grpc/unary_call.h"

namespace tandem::grpc_front {
namespace {

namespace health = grpc::health::v1;
using Serving = health::HealthCheckResponse::ServingStatus;

// How late a watcher may hear of a change.
constexpr std::chrono::milliseconds kWatchInterval{200};

bool IsKnown(const std::string& service) {
  return service.empty() || service == "inference.GRPCInferenceService";
}

Serving StatusNow(const FrontEndParts& parts) {
  return parts.Serving() ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
}

// One Watch call: says the status, and again whenever it has changed. As in InferStream, what to begin is decided under
// the lock, marked as under way, and begun outside.
class WatchCall final : public LongCall {
 public:
  WatchCall(FrontEndParts& parts, Call& call) : parts_(parts), call_(call) {}
  ~WatchCall() override { parts_.long_calls.Remove(this); }

  void Start() override { call_.Read(); }

  void OnRead(bool /*ok*/, grpc::ByteBuffer& request) override {
    health::HealthCheckRequest asked;
    const Status parsed = Guarded([&] { return TakeMessage(request, kMaxControlMessageBytes, asked); });
    if (!parsed) return call_.Finish(ToGrpcStatus(parsed));
    known_ = IsKnown(asked.service());
    parts_.long_calls.Add(shared_from_this());
    Change([](State& s) { s.asked = true; });
  }

  void OnWritten(bool ok) override {
    Change([ok](State& s) { s.writing = false, s.gone |= !ok; });
  }
  void OnWake() override {
    Change([](State& s) { s.waiting = false; });
  }
  void OnGone() override {
    Change([](State& s) { s.gone = true; });
  }
  void Drain() override {
    Change([](State& s) { s.draining = true; });
  }

 private:
  struct State {
    std::optional<Serving> said;
    bool asked = false;  // The request has been read; nothing begins before.
    bool writing = false;
    bool waiting = false;
    bool gone = false;
    bool draining = false;
    bool finished = false;
  };

  struct Next {
    std::optional<grpc::ByteBuffer> write;
    bool wait = false;
    bool finish = false;
  };

  template <typename Apply>
  void Change(Apply apply) {
    Next next;
    const Serving now = StatusNow(parts_);
    {
      MutexLock lock(mu_);
      apply(state_);
      next = Decide(now);
    }
    if (next.write) call_.Write(*next.write);
    if (next.wait) call_.WakeIn(kWatchInterval);
    if (next.finish) call_.Finish(ShuttingDown());
  }

  Next Decide(Serving serving) REQUIRES(mu_) {
    State& s = state_;
    Next next;
    if (!s.asked) return next;
    const Serving now = known_ ? serving : health::HealthCheckResponse::SERVICE_UNKNOWN;
    if (!s.writing && !s.gone && !s.finished && s.said != now) {
      s.gone = !Pack(now, next.write.emplace());
      if (s.gone) next.write.reset();
      s.said = now;
      s.writing = !s.gone;
    }
    const bool last = s.gone || s.draining;
    if (!last && !s.waiting) next.wait = s.waiting = true;
    if (last && !s.writing && !s.waiting && !s.finished) next.finish = s.finished = true;
    return next;
  }

  static bool Pack(Serving status, grpc::ByteBuffer& bytes) {
    return Guarded([&]() -> Status {
             health::HealthCheckResponse response;
             response.set_status(status);
             return PackMessage(response, bytes);
           })
        .has_value();
  }

  // Constant once the request has been read.
  FrontEndParts& parts_;
  Call& call_;
  bool known_ = false;

  Mutex mu_;
  State state_ GUARDED_BY(mu_);
};

}  // namespace

void AddHealthRoutes(FrontEndParts& parts, Routes& routes) {
  Route& check = routes["/grpc.health.v1.Health/Check"];
  check = UnaryRoute<health::HealthCheckRequest, health::HealthCheckResponse>(
      [&parts](auto& asked, auto& response) -> Status {
        if (!IsKnown(asked.service())) {
          return Fail(ErrorCode::kNotFound, "service '{}' is not known here", Excerpt(asked.service()));
        }
        response.set_status(StatusNow(parts));
        return {};
      });
  check.open = true;
  routes["/grpc.health.v1.Health/Watch"] = {
      .open = true, .lasting = true, .make = [&parts](Call& call) { return std::make_shared<WatchCall>(parts, call); }};
}

}  // namespace tandem::grpc_front
