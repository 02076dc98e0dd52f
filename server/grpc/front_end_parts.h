#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "api/base/result.h"
#include "server/core/server_core.h"
#include "server/grpc/grpc_options.h"
#include "server/grpc/long_calls.h"

namespace tandem::grpc_front {

// Bounds the bytes of all requests that are being worked on, or of all answers that are on their way. Thread-safe.
// Shared by its leases, because a model load may outlive the call that asked for it.
class ByteBudget : public std::enable_shared_from_this<ByteBudget> {
 public:
  // `what` is bounded, for the error; it must stay there.
  ByteBudget(std::size_t limit, std::string_view what) : limit_(limit), what_(what) {}

  [[nodiscard]] std::size_t limit() const { return limit_; }

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
    ~Lease() { ReduceTo(0); }
    // Gives back what is above `bytes`.
    void ReduceTo(std::size_t bytes) {
      if (!budget_ || bytes >= bytes_) return;
      budget_->used_.fetch_sub(bytes_ - bytes, std::memory_order_relaxed);
      bytes_ = bytes;
    }

   private:
    std::shared_ptr<ByteBudget> budget_;
    std::size_t bytes_ = 0;
  };

  [[nodiscard]] Result<Lease> Take(std::size_t bytes) { return TakeUpTo(limit_, bytes); }
  // The same while no more than `limit` are taken.
  [[nodiscard]] Result<Lease> TakeUpTo(std::size_t limit, std::size_t bytes) {
    const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    Lease lease(shared_from_this(), bytes);
    // A single one is let in whatever its size: that has a limit of its own.
    if (before > 0 && before + bytes > limit) {
      return Fail(ErrorCode::kUnavailable, "{} of {} bytes are under way; no room for {} more", what_, before, bytes);
    }
    return lease;
  }

 private:
  const std::size_t limit_;
  const std::string_view what_;
  std::atomic<std::size_t> used_{0};
};

// What every call of the gRPC front end has at hand. Owned by GrpcServer; outlives every call.
struct FrontEndParts {
  FrontEndParts(ServerCore& server, GrpcOptions how) : core(server), options(std::move(how)) {}

  ServerCore& core;
  const GrpcOptions options;
  const std::shared_ptr<ByteBudget> budget =
      std::make_shared<ByteBudget>(options.max_request_bytes_under_way, "requests");
  const std::shared_ptr<ByteBudget> answers =
      std::make_shared<ByteBudget>(options.max_answer_bytes_under_way, "answers");
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
    // What is too large for the server was refused by its size; this is what others have left.
    return Fail(ErrorCode::kUnavailable, "there is not enough memory for this request now");
  } catch (const std::exception& e) {
    return Fail(ErrorCode::kInternal, "unexpected failure: {}", e.what());
  } catch (...) {
    return Fail(ErrorCode::kInternal, "unexpected failure");
  }
}

}  // namespace tandem::grpc_front
