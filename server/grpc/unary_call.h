#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "server/grpc/call.h"
#include "server/grpc/front_end_parts.h"
#include "server/grpc/raw_message.h"

namespace tandem::grpc_front {

// Ends a call with its one answer, or with an error and no answer, and with how long to wait if that is known.
void EndCall(Call& call, const Status& status, const grpc::ByteBuffer& answer);

// A call of one message that is answered at once, where it was read. What comes after the message is not read.
class UnaryCall final : public CallHandler {
 public:
  using Handle = std::function<Status(grpc::ByteBuffer& request, grpc::ByteBuffer& answer)>;

  // `handle` is borrowed, from the route.
  UnaryCall(Call& call, const Handle& handle) : call_(call), handle_(handle) {}

  void Start() override { call_.Read(); }
  void OnRead(bool ok, grpc::ByteBuffer& request) override;

 private:
  Call& call_;
  const Handle& handle_;
};

// For calls of small messages that `answer`, a Status(Request&, Response&), answers.
template <typename Request, typename Response, typename Answer>
[[nodiscard]] Route UnaryRoute(Answer answer) {
  UnaryCall::Handle handle = [answer = std::move(answer)](grpc::ByteBuffer& request,
                                                          grpc::ByteBuffer& packed) -> Status {
    Request asked;
    TANDEM_TRY(TakeMessage(request, kMaxControlMessageBytes, asked));
    Response response;
    TANDEM_TRY(answer(asked, response));
    return PackMessage(response, packed);
  };
  return {.make = [handle = std::move(handle)](Call& call) { return std::make_shared<UnaryCall>(call, handle); }};
}

}  // namespace tandem::grpc_front
