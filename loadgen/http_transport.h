#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "loadgen/http_connection.h"
#include "loadgen/http_request.h"
#include "loadgen/tls_client.h"
#include "loadgen/transport.h"

namespace tandem::loadgen {

struct HttpTransportOptions {
  std::string host = "127.0.0.1";  // A name, or an IPv4 or IPv6 address.
  int port = 8000;
  // Connections are opened when needed, up to this many; requests beyond wait in order for a free one.
  std::size_t max_connections = 1024;
  // From Send() to the last byte of the answer.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(30);
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(5);
  std::optional<TlsClientOptions> tls;  // Empty: plain HTTP.
};

// Many keep-alive HTTP/1.1 connections to one server, plain or over TLS, driven by epoll on the thread that calls
// Poll(). Any number of requests may be outstanding. A request whose reused connection the server closed without a byte
// of an answer is sent once more, as every HTTP client does.
class HttpTransport final : public Transport {
 public:
  // Connects once, and makes a TLS handshake if asked to, so that a server that cannot be reached or is not trusted is
  // an error here and not a run full of failures.
  [[nodiscard]] static Result<std::unique_ptr<HttpTransport>> Create(const HttpTransportOptions& options,
                                                                     std::vector<HttpRequest> requests,
                                                                     const Clock& clock);
  ~HttpTransport() override;
  HttpTransport(const HttpTransport&) = delete;
  HttpTransport& operator=(const HttpTransport&) = delete;

  void Send(std::size_t request, MonotonicTime scheduled) override;
  void Poll(MonotonicTime until, std::vector<RequestRecord>& finished) override;
  [[nodiscard]] std::size_t outstanding() const override { return outstanding_ + finished_.size(); }

  [[nodiscard]] std::size_t connections() const { return open_connections_; }
  // Opens connections until there are `count`, so that none has to be made while it is measured.
  void OpenConnections(std::size_t count);

 private:
  // A request under way. Slots are reused; `serial` tells one use from the next.
  struct Slot {
    RequestRecord record;
    std::uint64_t serial = 0;
    std::int32_t connection = -1;
    bool retried = false;
  };
  struct Entry {
    std::unique_ptr<HttpConnection> connection;  // Empty: free for reuse.
    std::uint32_t serial = 0;
    std::int32_t slot = -1;
    bool wants_write = false;
  };
  struct IdleEntry {
    std::int32_t connection;
    std::uint32_t serial;
  };
  struct QueueEntry {
    std::int32_t slot;
    std::uint64_t serial;
  };
  struct Deadline {
    MonotonicTime at;
    std::uint64_t serial;
    std::int32_t slot;
  };

  HttpTransport(HttpTransportOptions options, std::vector<HttpRequest> requests, const Clock& clock, Socket epoll,
                SocketAddress address, std::unique_ptr<TlsClient> tls);

  std::int32_t TakeSlot();
  void Finish(std::int32_t index, TransportOutcome outcome, MonotonicTime now);
  // Gives the request a connection, or a place in the queue.
  void Dispatch(std::int32_t slot);
  std::int32_t TakeIdle();
  std::int32_t OpenConnection();
  void CloseConnection(std::int32_t index);
  void Start(std::int32_t index, std::int32_t slot);
  void Write(std::int32_t index);
  void Watch(std::int32_t index, bool write, int operation);
  // Watches for what the connection waits for.
  void Rewatch(std::int32_t index);
  void HandleEvent(std::uint64_t data, std::uint32_t events);
  void Connect(std::int32_t index, std::uint32_t events);
  void Read(std::int32_t index);
  void Answered(std::int32_t index, MonotonicTime now);
  void Lost(std::int32_t index);
  void ServeQueue();
  void ExpireTimeouts(MonotonicTime now);

  // Constant after construction.
  const HttpTransportOptions options_;
  const std::vector<HttpRequest> requests_;
  const Clock& clock_;
  const Socket epoll_;
  const SocketAddress address_;
  const std::unique_ptr<TlsClient> tls_;  // Null: plain.

  // The polling thread only.
  std::vector<char> scratch_;
  std::vector<Slot> slots_;
  std::vector<std::int32_t> free_slots_;
  std::vector<Entry> connections_;
  std::vector<std::int32_t> free_connections_;
  std::vector<IdleEntry> idle_;     // A stack; entries of connections that have gone are skipped.
  std::deque<QueueEntry> queue_;    // Entries of requests that have timed out are skipped.
  std::deque<Deadline> deadlines_;  // In order, since every request has the same timeout.
  std::vector<RequestRecord> finished_;
  std::size_t outstanding_ = 0;
  std::size_t open_connections_ = 0;
  std::uint64_t next_serial_ = 0;
  std::uint32_t next_connection_serial_ = 0;
};

}  // namespace tandem::loadgen
