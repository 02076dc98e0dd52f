#include "loadgen/http_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/uio.h>

namespace tandem::loadgen {
namespace {

constexpr std::size_t kMaxVectors = 64;
// Offered in one call. A socket takes no more at once, and sanitizers look at every byte that is offered.
constexpr std::size_t kMaxBytes = 1 << 20;

std::size_t PartCount(const HttpRequest& request) {
  return 1 + request.parts.size();
}

std::span<const std::byte> PartOf(const HttpRequest& request, std::size_t part) {
  if (part == 0) return std::as_bytes(std::span(request.head));
  return request.parts[part - 1].view;
}

}  // namespace

bool HttpConnection::FinishConnect() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return false;
  connecting_ = false;
  return true;
}

void HttpConnection::Begin(const HttpRequest& request) {
  request_ = &request;
  part_ = 0;
  offset_ = 0;
  reader_.Reset(request.keep_body);
}

HttpConnection::WriteResult HttpConnection::Flush() {
  const std::size_t count = PartCount(*request_);
  while (part_ < count) {
    std::array<iovec, kMaxVectors> vectors;
    std::size_t used = 0;
    std::size_t room = kMaxBytes;
    for (std::size_t part = part_; part < count && used < kMaxVectors && room > 0; ++part) {
      auto bytes = PartOf(*request_, part).subspan(part == part_ ? offset_ : 0);
      bytes = bytes.first(std::min(bytes.size(), room));
      room -= bytes.size();
      vectors[used++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = used;
    const ssize_t sent = sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? WriteResult::kBlocked : WriteResult::kLost;
    }
    auto left = static_cast<std::size_t>(sent);
    while (part_ < count) {
      const std::size_t rest = PartOf(*request_, part_).size() - offset_;
      if (left < rest) {
        offset_ += left;
        break;
      }
      left -= rest;
      ++part_;
      offset_ = 0;
    }
  }
  return WriteResult::kComplete;
}

HttpConnection::ReadResult HttpConnection::Receive(std::span<char> scratch) {
  while (true) {
    const ssize_t got = recv(fd(), scratch.data(), scratch.size(), 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? ReadResult::kMore : ReadResult::kLost;
    }
    if (got == 0) {
      reader_.Close();
      return request_ != nullptr && reader_.done() ? ReadResult::kAnswered : ReadResult::kLost;
    }
    // Nothing was asked for: whatever this is, the connection is of no use any more.
    if (request_ == nullptr) return ReadResult::kLost;
    const auto size = static_cast<std::size_t>(got);
    surplus_ = reader_.Feed({scratch.data(), size}) < size;
    if (reader_.malformed()) return ReadResult::kMalformed;
    if (reader_.done()) return ReadResult::kAnswered;
    // A short read has emptied the socket; asking again would only cost a call.
    if (size < scratch.size()) return ReadResult::kMore;
  }
}

void HttpConnection::Finish() {
  request_ = nullptr;
  ++answered_;
}

bool HttpConnection::reusable() const {
  const bool written = request_ == nullptr || part_ == PartCount(*request_);
  return reader_.done() && reader_.keep_alive() && written && !surplus_;
}

}  // namespace tandem::loadgen
