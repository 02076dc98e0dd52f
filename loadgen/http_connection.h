#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/base/clock.h"
#include "loadgen/http_request.h"
#include "loadgen/http_response_reader.h"
#include "loadgen/socket_address.h"

namespace tandem::loadgen {

// One keep-alive connection that carries one request at a time, over a non-blocking socket. Owned and driven by
// HttpTransport, which waits for its events. Used by one thread.
class HttpConnection {
 public:
  enum class WriteResult : std::uint8_t { kComplete, kBlocked, kLost };
  enum class ReadResult : std::uint8_t { kMore, kAnswered, kLost, kMalformed };

  // `connecting` sockets are written to only after FinishConnect().
  explicit HttpConnection(Socket socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int fd() const { return socket_.fd(); }
  [[nodiscard]] bool connecting() const { return connecting_; }
  // False when the connection was refused.
  [[nodiscard]] bool FinishConnect();

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

 private:
  Socket socket_;
  bool connecting_ = true;
  const HttpRequest* request_ = nullptr;  // Borrowed from the transport's caller.
  std::size_t part_ = 0;                  // 0 is the head, then the parts.
  std::size_t offset_ = 0;                // Bytes of that part that are written.
  bool surplus_ = false;                  // The server sent more than the answer.
  std::uint64_t answered_ = 0;
  HttpResponseReader reader_;
};

}  // namespace tandem::loadgen
