#include "server/grpc/reflection_routes.h"

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "api/base/mutex.h"
#include "server/grpc/grpc_status.h"
#include "server/grpc/raw_message.h"
#include "server/grpc/reflection_answers.h"

namespace tandem::grpc_front {
namespace {

namespace v1 = grpc::reflection::v1;

constexpr std::array<std::string_view, 3> kServices = {"inference.GRPCInferenceService", "grpc.health.v1.Health",
                                                       "grpc.reflection.v1.ServerReflection"};

// One reflection call: question and answer in turn, until the client ends it. Reads nothing while it writes, so there
// is one of each at most.
class ReflectionCall final : public LongCall {
 public:
  // `answers` belongs to the route.
  ReflectionCall(FrontEndParts& parts, Call& call, const ReflectionAnswers& answers)
      : parts_(parts), call_(call), answers_(answers) {}
  ~ReflectionCall() override { parts_.long_calls.Remove(this); }

  void Start() override {
    parts_.long_calls.Add(shared_from_this());
    ReadNext();
  }

  void OnRead(bool ok, grpc::ByteBuffer& question) override {
    if (!StopReading()) return;
    if (!ok) return call_.Finish(grpc::Status::OK);
    grpc::ByteBuffer answer;
    const Status packed = Guarded([&]() -> Status {
      v1::ServerReflectionResponse response;
      TANDEM_TRY(Answer(question, response));
      return PackMessage(response, answer);
    });
    if (packed) {
      call_.Write(answer);
    } else {
      call_.Finish(ToGrpcStatus(packed));
    }
  }

  void OnWritten(bool ok) override {
    if (ok) return ReadNext();
    call_.Finish(grpc::Status::CANCELLED);
  }

  void Drain() override {
    bool idle = false;
    {
      MutexLock lock(mu_);
      draining_ = true;
      idle = std::exchange(reading_, false);
    }
    if (idle) FinishDrained();
  }

 private:
  // Whoever sets reading_ to false goes on with the call or finishes it.
  void ReadNext() EXCLUDES(mu_) {
    // First: once reading_ is set, the call may be drained and end.
    call_.Read();
    bool drained = false;
    {
      MutexLock lock(mu_);
      drained = draining_;
      reading_ = !drained;
    }
    if (drained) FinishDrained();
  }

  bool StopReading() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return std::exchange(reading_, false);
  }

  void FinishDrained() { call_.Finish(ShuttingDown()); }

  Status Answer(grpc::ByteBuffer& question, v1::ServerReflectionResponse& response) const {
    if (question.Length() > kMaxControlMessageBytes) {
      return Fail(ErrorCode::kTooLarge, "a reflection request has at most {} bytes", kMaxControlMessageBytes);
    }
    v1::ServerReflectionRequest asked;
    if (const Status parsed = TakeMessage(question, kMaxControlMessageBytes, asked); !parsed) {
      response.mutable_error_response()->set_error_code(ToGrpcCode(parsed.error().code));
      response.mutable_error_response()->set_error_message(parsed.error().message);
    } else {
      answers_.Answer(asked, response);
    }
    return {};
  }

  // Constant after construction.
  FrontEndParts& parts_;
  Call& call_;
  const ReflectionAnswers& answers_;

  Mutex mu_;
  bool reading_ GUARDED_BY(mu_) = false;
  bool draining_ GUARDED_BY(mu_) = false;
};

}  // namespace

void AddReflectionRoutes(FrontEndParts& parts, Routes& routes) {
  const Route route{.open = true,
                    .lasting = true,
                    .make = [&parts, answers = std::make_shared<const ReflectionAnswers>(kServices)](Call& call) {
                      return std::make_shared<ReflectionCall>(parts, call, *answers);
                    }};
  routes["/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"] = route;
  routes["/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"] = route;
}

}  // namespace tandem::grpc_front
