#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "api/base/mutex.h"
#include "server/http/response.h"

namespace tandem::http {

// Lets the thread that has an answer write it to the client's socket itself: to wake the loop first costs more than the
// writing. One per connection, shared with its exchanges. Thread-safe.
//
// While it is allowed the loop writes nothing to the socket, and the socket stays open.
class DirectSend {
 public:
  // From the loop: one answer may be written to `fd`, a plain socket with nothing left to send.
  void Allow(int fd, const Delivery& delivery) EXCLUDES(mu_);
  // From the loop: no more. Waits for a write under way. False when an answer was written that
  // the loop has not taken note of.
  bool Forbid() EXCLUDES(mu_);

  // An answer that was written here.
  struct Sent {
    std::size_t bytes = 0;  // That the socket took.
    std::string rest;       // What it did not take: the loop's to send.
  };
  // From the loop: an answer is being written, or was written and not taken note of. Does not wait.
  [[nodiscard]] bool begun() const { return begun_.load(std::memory_order_acquire); }
  // From the loop, which takes note of an answer that was written; once for each. Waits for a write under way.
  [[nodiscard]] std::optional<Sent> TakeSent() EXCLUDES(mu_);

  // Writes the answer as far as the socket takes it just now. False when it is not allowed, or the answer is so large
  // that the socket would not take it at once. The loop is to be told afterwards.
  [[nodiscard]] bool Send(const Response& response) EXCLUDES(mu_);

 private:
  std::atomic<bool> begun_{false};  // Written under mu_.
  Mutex mu_;
  int fd_ GUARDED_BY(mu_) = -1;               // Borrowed from the connection; -1: not allowed.
  std::optional<Sent> sent_ GUARDED_BY(mu_);  // Until TakeSent().
  Delivery delivery_ GUARDED_BY(mu_);
  std::string date_ GUARDED_BY(mu_);
};

}  // namespace tandem::http
