#pragma once

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
  // From the loop, which takes note of an answer that was written: how many bytes of it the socket took.
  [[nodiscard]] std::size_t TakeSent() EXCLUDES(mu_);

  // Writes the answer as far as the socket takes it just now; what is left is the loop's to send. Nothing when it is
  // not allowed, or the answer is so large that the socket would not take it at once.
  [[nodiscard]] std::optional<std::string> Send(const Response& response) EXCLUDES(mu_);

 private:
  Mutex mu_;
  int fd_ GUARDED_BY(mu_) = -1;                      // Borrowed from the connection; -1: not allowed.
  std::optional<std::size_t> sent_ GUARDED_BY(mu_);  // Of an answer, until TakeSent().
  Delivery delivery_ GUARDED_BY(mu_);
  std::string date_ GUARDED_BY(mu_);
};

}  // namespace tandem::http
