#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "loadgen/byte_stream.h"
#include "loadgen/http_request.h"
#include "loadgen/http_response_reader.h"

namespace tandem::loadgen {

// One keep-alive connection that carries one request at a time, over a non-blocking socket. Owned and driven by
// HttpTransport or HttpCaller, who wait for its events. Used by one thread.
class HttpConnection {
 public:
  enum class ConnectResult : std::uint8_t { kReady, kBlocked, kFailed };
  enum class WriteResult : std::uint8_t { kComplete, kBlocked, kLost };
  enum class ReadResult : std::uint8_t { kMore, kAnswered, kLost, kMalformed };

  // On a socket that may still be connecting. Nothing is sent before FinishConnect() says that it is ready.
  explicit HttpConnection(ByteStream stream) : stream_(std::move(stream)) {}

  [[nodiscard]] int fd() const { return stream_.fd(); }
  [[nodiscard]] bool tls() const { return stream_.tls(); }
  [[nodiscard]] bool ready() const { return phase_ == Phase::kReady; }
  // No connection yet: FinishConnect() may be called when the socket can be written to.
  [[nodiscard]] bool connecting() const { return phase_ == Phase::kConnecting; }
  // Goes on with the connection and the handshake.
  [[nodiscard]] ConnectResult FinishConnect();
  // What is blocked waits for room to write, else for bytes to read.
  [[nodiscard]] bool wants_write() const { return stream_.wants_write(); }

  // Takes a request, which stays alive until it is answered, and readies the reader.
  void Begin(const HttpRequest& request);
  [[nodiscard]] WriteResult Flush();
  // Reads what is there, through `scratch`.
  [[nodiscard]] ReadResult Receive(std::span<char> scratch);
  // After an answer: another request may follow on this connection.
  void Finish();

  [[nodiscard]] HttpResponseReader& reader() { return reader_; }
  // The answer is complete, the request was written whole, and the server keeps the connection.
  [[nodiscard]] bool reusable() const;
  // This connection has carried an answered request before.
  [[nodiscard]] bool reused() const { return answered_ > 0; }
  // After kFailed or kLost, for people.
  [[nodiscard]] std::string WhyLost() const { return stream_.WhyBroken(); }

 private:
  enum class Phase : std::uint8_t { kConnecting, kHandshake, kReady };

  ByteStream stream_;
  Phase phase_ = Phase::kConnecting;
  const HttpRequest* request_ = nullptr;  // Borrowed from the transport's caller.
  std::size_t part_ = 0;                  // 0 is the head, then the parts.
  std::size_t offset_ = 0;                // Bytes of that part that are written.
  bool surplus_ = false;                  // The server sent more than the answer.
  std::uint64_t answered_ = 0;
  HttpResponseReader reader_;
};

}  // namespace tandem::loadgen
