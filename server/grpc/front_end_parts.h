#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "api/base/result.h"
#include "server/core/server_core.h"
#include "server/grpc/grpc_options.h"
#include "server/grpc/long_calls.h"

namespace tandem::grpc_front {

// Bounds the bytes of all requests that are being worked on. Thread-safe. Shared by its leases, because a model load
// may outlive the call that asked for it.
class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  explicit ByteBudget(std::size_t limit) : limit_(limit) {}

  // Bytes taken from the budget until its end. Move-only.
  class Lease {
   public:
    Lease() = default;
    Lease(std::shared_ptr<ByteBudget> budget, std::size_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Lease() {
      if (budget_) budget_->used_.fetch_sub(bytes_, std::memory_order_relaxed);
    }

   private:
    std::shared_ptr<ByteBudget> budget_;
    std::size_t bytes_ = 0;
  };

  [[nodiscard]] Result<Lease> Take(std::size_t bytes) {
    const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    Lease lease(shared_from_this(), bytes);
    // A single request is let in whatever its size: that has a limit of its own.
    if (before > 0 && before + bytes > limit_) {
      return Fail(ErrorCode::kUnavailable, "requests of {} bytes are under way; no room for {} more", before, bytes);
    }
    return lease;
  }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

// What every call of the gRPC front end has at hand. Owned by GrpcServer; outlives every call.
struct FrontEndParts {
  FrontEndParts(ServerCore& server, GrpcOptions how) : core(server), options(std::move(how)) {}

  ServerCore& core;
  const GrpcOptions options;
  const std::shared_ptr<ByteBudget> budget = std::make_shared<ByteBudget>(options.max_request_bytes_under_way);
  LongCalls long_calls;
  std::atomic<bool> draining{false};
  std::atomic<int> computing{0};  // Requests that were handed to core.inference and are not answered.

  // What health says.
  [[nodiscard]] bool Serving() const { return !draining.load(std::memory_order_acquire) && core.Ready(); }
};

// Runs `work`, which returns a Result, and turns whatever it throws into one.
template <typename Work>
[[nodiscard]] auto Guarded(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Fail(ErrorCode::kTooLarge, "there is not enough memory for this request");
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "unexpected failure: {}", e.what());
  } catch (...) {
    return Fail(ErrorCode::kInternal, "unexpected failure");
  }
}

}  // namespace tandem::grpc_front
