#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <sys/uio.h>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "loadgen/socket_address.h"
#include "loadgen/tls_client.h"

namespace tandem::loadgen {

// What came of one attempt to move bytes.
struct IoResult {
  enum class Kind : std::uint8_t {
    kDone,     // `bytes` were moved, or the handshake is complete.
    kBlocked,  // Wait for the socket, for writing if wants_write() says so, and try again.
    kEnd,      // The peer has said that nothing more will come.
    kBroken,
  };
  Kind kind = Kind::kBroken;
  std::size_t bytes = 0;
};

// The bytes of one connection, plain or over TLS, on a non-blocking socket that it owns. Which of the two is one branch
// a call, so that plain connections pay for nothing else. Owned by HttpConnection; used by one thread. Movable.
class ByteStream {
 public:
  explicit ByteStream(Socket socket) : socket_(std::move(socket)) {}
  // `session` is one on that socket.
  ByteStream(Socket socket, TlsSession session) : socket_(std::move(socket)), session_(std::move(session)) {}
  ByteStream(ByteStream&&) = default;
  ByteStream& operator=(ByteStream&&) = delete;
  // Tells the server that nothing more will come.
  ~ByteStream();

  [[nodiscard]] int fd() const { return socket_.fd(); }
  [[nodiscard]] bool tls() const { return session_ != nullptr; }

  // To be repeated until it is done, before the first byte. Done at once on a plain stream.
  [[nodiscard]] IoResult Handshake();
  // Writes a part of the pieces, in order. After kBlocked the same bytes must be offered again, and maybe more.
  [[nodiscard]] IoResult Write(std::span<const iovec> pieces);
  // A read that does not fill `into` has emptied a plain stream, but perhaps not one over TLS.
  [[nodiscard]] IoResult Read(std::span<char> into);

  // Something that was blocked waits for room to write.
  [[nodiscard]] bool wants_write() const { return read_wants_write_ || write_wants_write_; }
  // Bytes have come that were not read and that no poller sees.
  [[nodiscard]] bool holds_bytes() const;
  // After kBroken or kEnd, for people.
  [[nodiscard]] std::string WhyBroken() const;

 private:
  [[nodiscard]] IoResult TlsWrite(std::span<const iovec> pieces);
  [[nodiscard]] IoResult TlsRead(std::span<char> into);
  [[nodiscard]] IoResult TlsFailed(int result, bool& wants_write);

  Socket socket_;
  TlsSession session_;  // Null: plain. Uses the socket.
  bool read_wants_write_ = false;
  bool write_wants_write_ = false;
  bool broken_ = false;
  unsigned long tls_error_ = 0;  // OpenSSL's, of a broken session.
  int error_ = 0;                // errno, of a broken socket.
};

// Connects and, with `tls`, makes the handshake; blocks, at most `timeout`. The error says what failed.
[[nodiscard]] Result<ByteStream> OpenStream(const SocketAddress& address, const TlsClient* tls,
                                            std::chrono::nanoseconds timeout);

// Waits until the socket can be read from or, with `write`, written to. False: neither until then.
[[nodiscard]] bool WaitForSocket(int fd, bool write, MonotonicTime until);

}  // namespace tandem::loadgen
