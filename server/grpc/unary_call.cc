#include "server/grpc/unary_call.h"

#include "server/grpc/grpc_status.h"

namespace tandem::grpc_front {

void EndCall(Call& call, const Status& status, const grpc::ByteBuffer& answer) {
  if (status) {
    call.Answer(answer);
  } else {
    call.Finish(ToGrpcStatus(status));
  }
}

void UnaryCall::OnRead(bool /*ok*/, grpc::ByteBuffer& request) {
  grpc::ByteBuffer answer;
  const Status answered = Guarded([&] { return handle_(request, answer); });
  EndCall(call_, answered, answer);
}

}  // namespace tandem::grpc_front
