#include "server/grpc/long_calls.h"

#include <utility>

namespace tandem::grpc_front {

void LongCalls::Add(const std::shared_ptr<LongCall>& call) {
  {
    MutexLock lock(mu_);
    if (!draining_) {
      open_.emplace(call.get(), call);
      return;
    }
  }
  call->Drain();
}

void LongCalls::Remove(const LongCall* call) {
  MutexLock lock(mu_);
  open_.erase(call);
}

void LongCalls::Drain() {
  std::map<const LongCall*, std::weak_ptr<LongCall>> open;
  {
    MutexLock lock(mu_);
    draining_ = true;
    open = std::exchange(open_, {});
  }
  for (const auto& [address, weak] : open) {
    if (const std::shared_ptr<LongCall> call = weak.lock()) call->Drain();
  }
}

}  // namespace tandem::grpc_front
