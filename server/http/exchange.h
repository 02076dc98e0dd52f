#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "api/base/cancel_token.h"
#include "server/http/io_loops.h"
#include "server/http/request.h"
#include "server/http/response.h"

namespace tandem::http {

class Connection;
class DirectSend;

// Bytes of a stream that are written and not yet in the client's socket. Shared by an exchange and its connection.
struct StreamGauge {
  std::atomic<std::size_t> posted{0};  // On their way to the loop.
  std::atomic<std::size_t> queued{0};  // In the connection's queue.
};

// One request and the right to answer it. Made by the connection, handed to the handler, kept by whoever will answer;
// it may outlive the connection and the server, and then answers go nowhere. Thread-safe, but a stream is written by
// one thread at a time. When the last holder lets go without an answer the client gets a 500, or, amid a stream, a cut
// connection.
class Exchange {
 public:
  Exchange(Request request, std::shared_ptr<IoLoop> loop, std::weak_ptr<Connection> connection,
           std::shared_ptr<DirectSend> direct);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] const Request& request() const { return request_; }
  // Hands the body over, so that it lives no longer than what is made of it. For the handler, once; request() has none
  // afterwards.
  [[nodiscard]] Bytes TakeBody() { return std::exchange(request_.body, {}); }

  // Cancelled when the client has gone. Shared with the work that the request causes.
  [[nodiscard]] const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }

  // Runs `task` on the connection's loop thread.
  void Post(IoLoop::Task task) { loop_->Post(std::move(task)); }

  // The answer. The first call counts, later ones do nothing. Off the loop's thread, a small one is sent at once.
  void Respond(Response response);
  // Answers for a handler that throws, inside of the catch: 503 where memory ran out, else 500.
  void RespondToException() noexcept;

  // An answer whose length is not known: the head (and its body, if any), then pieces, then the end.
  void BeginStream(Response head);
  void Write(std::string data);
  void End();
  // What the client has not taken yet; a writer waits while it is large.
  [[nodiscard]] std::size_t PendingBytes() const;

 private:
  enum class State { kOpen, kStreaming, kDone };

  Request request_;  // Constant but for TakeBody().
  const std::shared_ptr<IoLoop> loop_;
  const std::weak_ptr<Connection> connection_;  // Locked on the loop's thread only, so that it dies there.
  const std::shared_ptr<DirectSend> direct_;    // Shared with the connection.
  const std::shared_ptr<CancelToken> cancel_;
  std::shared_ptr<StreamGauge> gauge_;  // Set by BeginStream.
  std::atomic<State> state_{State::kOpen};
};

}  // namespace tandem::http
