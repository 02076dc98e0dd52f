#pragma once

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
  // From the loop: no more. Waits for a write under way. False when an answer was written since Allow().
  bool Forbid() EXCLUDES(mu_);

  // Writes the answer as far as the socket takes it just now; what is left is the loop's to send. Nothing when it is
  // not allowed, or the answer is so large that the socket would not take it at once.
  [[nodiscard]] std::optional<std::string> Send(const Response& response) EXCLUDES(mu_);

 private:
  Mutex mu_;
  int fd_ GUARDED_BY(mu_) = -1;  // Borrowed from the connection; -1: not allowed.
  bool sent_ GUARDED_BY(mu_) = false;
  Delivery delivery_ GUARDED_BY(mu_);
  std::string date_ GUARDED_BY(mu_);
};

}  // namespace tandem::http
