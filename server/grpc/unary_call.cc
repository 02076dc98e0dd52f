#include "server/grpc/unary_call.h"

#include <string>

#include "server/grpc/grpc_status.h"

namespace tandem::grpc_front {

void EndCall(Call& call, const Status& status, const grpc::ByteBuffer& answer) {
  if (status) return call.Answer(answer);
  if (const auto wait = status.error().retry_after; wait.count() > 0) {
    call.AddTrailer("retry-after-ms", std::to_string(wait.count()));
  }
  call.Finish(ToGrpcStatus(status));
}

void UnaryCall::OnRead(bool /*ok*/, grpc::ByteBuffer& request) {
  grpc::ByteBuffer answer;
  const Status answered = Guarded([&] { return handle_(request, answer); });
  EndCall(call_, answered, answer);
}

}  // namespace tandem::grpc_front
