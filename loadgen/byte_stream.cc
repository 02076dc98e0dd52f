#include "loadgen/byte_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

namespace tandem::loadgen {
namespace {

// The most that one TLS record holds.
constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;

bool WouldBlock(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

ByteStream::~ByteStream() {
  // After a failure OpenSSL forbids it. What does not fit into the socket is not worth waiting for.
  if (!session_ || broken_ || SSL_is_init_finished(session_.get()) == 0) return;
  ERR_clear_error();
  SSL_shutdown(session_.get());
}

IoResult ByteStream::Handshake() {
  if (!session_) return {IoResult::Kind::kDone};
  ERR_clear_error();
  const int result = SSL_do_handshake(session_.get());
  if (result != 1) return TlsFailed(result, write_wants_write_);
  write_wants_write_ = false;
  return {IoResult::Kind::kDone};
}

IoResult ByteStream::Write(std::span<const iovec> pieces) {
  if (session_) return TlsWrite(pieces);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  ssize_t sent = 0;
  do {
    sent = sendmsg(fd(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  write_wants_write_ = sent < 0 && WouldBlock(errno);
  if (sent >= 0) return {IoResult::Kind::kDone, static_cast<std::size_t>(sent)};
  error_ = errno;
  return {write_wants_write_ ? IoResult::Kind::kBlocked : IoResult::Kind::kBroken};
}

IoResult ByteStream::Read(std::span<char> into) {
  if (session_) return TlsRead(into);
  ssize_t got = 0;
  do {
    got = recv(fd(), into.data(), into.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return {IoResult::Kind::kDone, static_cast<std::size_t>(got)};
  if (got == 0) return {IoResult::Kind::kEnd};
  error_ = errno;
  return {WouldBlock(errno) ? IoResult::Kind::kBlocked : IoResult::Kind::kBroken};
}

IoResult ByteStream::TlsWrite(std::span<const iovec> pieces) {
  const auto* bytes = static_cast<const std::byte*>(pieces.front().iov_base);
  std::size_t size = pieces.front().iov_len;
  std::array<std::byte, kRecordBytes> record;
  if (size < record.size() && pieces.size() > 1) {
    // Small pieces go into one record: a head and its tensor would be two records, and two packets, otherwise.
    size = 0;
    for (const iovec& piece : pieces) {
      const std::size_t taken = std::min(piece.iov_len, record.size() - size);
      if (taken > 0) std::memcpy(record.data() + size, piece.iov_base, taken);
      size += taken;
    }
    bytes = record.data();
  }
  if (size == 0) return {IoResult::Kind::kDone};
  ERR_clear_error();
  std::size_t written = 0;
  const int result = SSL_write_ex(session_.get(), bytes, size, &written);
  if (result != 1) return TlsFailed(result, write_wants_write_);
  write_wants_write_ = false;
  return {IoResult::Kind::kDone, written};
}

IoResult ByteStream::TlsRead(std::span<char> into) {
  ERR_clear_error();
  std::size_t got = 0;
  const int result = SSL_read_ex(session_.get(), into.data(), into.size(), &got);
  if (result != 1) return TlsFailed(result, read_wants_write_);
  read_wants_write_ = false;
  return {IoResult::Kind::kDone, got};
}

IoResult ByteStream::TlsFailed(int result, bool& wants_write) {
  const int error = errno;
  const int kind = SSL_get_error(session_.get(), result);
  wants_write = kind == SSL_ERROR_WANT_WRITE;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return {IoResult::Kind::kBlocked};
  if (kind == SSL_ERROR_ZERO_RETURN) return {IoResult::Kind::kEnd};
  // The first failure is the cause; what fails after it follows from it.
  if (!broken_) {
    const unsigned long last = ERR_peek_last_error();
    const bool by_system = kind == SSL_ERROR_SYSCALL || ERR_SYSTEM_ERROR(last);
    tls_error_ = by_system ? 0 : last;
    error_ = !by_system ? 0 : ERR_SYSTEM_ERROR(last) ? ERR_GET_REASON(last) : error;
  }
  broken_ = true;
  return {IoResult::Kind::kBroken};
}

bool ByteStream::holds_bytes() const {
  return session_ && SSL_has_pending(session_.get()) != 0;
}

std::string ByteStream::WhyBroken() const {
  if (session_ && tls_error_ != 0) return WhyTlsBroke(session_, tls_error_);
  if (error_ != 0 && !WouldBlock(error_)) return std::generic_category().message(error_);
  return "the server closed the connection";
}

bool WaitForSocket(int fd, bool write, MonotonicTime until) {
  while (true) {
    const auto left = std::max(until - RealClock::Instance().Now(), std::chrono::nanoseconds(0));
    const timespec limit{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                         .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    pollfd entry{.fd = fd, .events = static_cast<short>(write ? POLLIN | POLLOUT : POLLIN), .revents = 0};
    const int ready = ppoll(&entry, 1, &limit, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    return ready == 1;
  }
}

Result<ByteStream> OpenStream(const SocketAddress& address, const TlsClient* tls, std::chrono::nanoseconds timeout) {
  const MonotonicTime until = RealClock::Instance().Now() + timeout;
  TANDEM_ASSIGN(Socket socket, StartConnect(address));
  if (!WaitForSocket(socket.fd(), true, until)) return Fail(ErrorCode::kUnavailable, "no connection in time");
  if (const int error = ConnectError(socket.fd()); error != 0) {
    return Fail(ErrorCode::kUnavailable, "{}", std::generic_category().message(error));
  }
  if (tls == nullptr) return ByteStream(std::move(socket));
  TlsSession session = tls->MakeSession(socket.fd());
  if (!session) return Fail(ErrorCode::kInternal, "there is no memory for a TLS session");
  ByteStream stream(std::move(socket), std::move(session));
  while (true) {
    const IoResult result = stream.Handshake();
    if (result.kind == IoResult::Kind::kDone) return stream;
    if (result.kind != IoResult::Kind::kBlocked) return Fail(ErrorCode::kUnavailable, "{}", stream.WhyBroken());
    if (!WaitForSocket(stream.fd(), stream.wants_write(), until)) {
      return Fail(ErrorCode::kUnavailable, "no TLS handshake in time; does the server speak TLS?");
    }
  }
}

}  // namespace tandem::loadgen
