#include "server/profile/profiled_session.h"

#include "server/repository/cancel_after.h"

namespace tandem {

Result<std::vector<Tensor>> ProfiledSession::Run(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                 CancelToken& cancel) {
  if (!left_) return session_.Run(inputs, outputs, cancel);
  const auto too_long = [] {
    return Fail(ErrorCode::kTooLarge,
                "the model has loops, and a profile of its runs would not end: what they note is bounded in time");
  };
  if (left_->count() <= 0) return too_long();
  CancelToken enough;
  const auto registration = cancel.OnCancel([&enough] { enough.Cancel(); });
  const MonotonicTime began = clock_.Now();
  const repository::CancelAfter limit(enough, *left_);
  auto result = session_.Run(inputs, outputs, enough);
  *left_ -= clock_.Now() - began;
  if (!result && limit.expired()) return too_long();
  return result;
}

}  // namespace tandem
