#pragma once

#include <map>
#include <memory>

#include "api/base/mutex.h"
#include "server/grpc/call.h"

namespace tandem::grpc_front {

// A call that goes on until its client ends it.
class LongCall : public CallHandler, public std::enable_shared_from_this<LongCall> {
 public:
  // The server is going: finish as soon as what was begun is done. Any thread; at most once.
  virtual void Drain() = 0;
};

// The long calls that are open, so that a server that drains need not wait for their clients. Thread-safe.
class LongCalls {
 public:
  // A call that comes after Drain() is drained at once. The call must Remove() itself in its destructor.
  void Add(const std::shared_ptr<LongCall>& call) EXCLUDES(mu_);
  void Remove(const LongCall* call) EXCLUDES(mu_);
  void Drain() EXCLUDES(mu_);

 private:
  Mutex mu_;
  bool draining_ GUARDED_BY(mu_) = false;
  // Weak, because a call may end on another thread while it is being drained.
  std::map<const LongCall*, std::weak_ptr<LongCall>> open_ GUARDED_BY(mu_);
};

}  // namespace tandem::grpc_front
