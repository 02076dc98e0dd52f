#include "server/http/stream.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tandem::http {
namespace {

constexpr std::size_t kMaxPieces = 16;

IoResult FromReturn(ssize_t n) {
  if (n > 0) return {IoResult::Kind::kBytes, static_cast<std::size_t>(n)};
  if (n == 0) return {IoResult::Kind::kEnd};
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {IoResult::Kind::kWouldBlock};
  return {IoResult::Kind::kBroken};
}

class PlainStream final : public Stream {
 public:
  explicit PlainStream(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const override { return fd_.get(); }
  IoResult Handshake() override { return {IoResult::Kind::kBytes}; }
  bool wants_write() const override { return false; }
  bool holds_bytes() const override { return false; }
  bool is_tls() const override { return false; }
  void ShutdownWrite() override { ::shutdown(fd_.get(), SHUT_WR); }

  IoResult Read(std::span<std::byte> into) override {
    return FromReturn(::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT));
  }

  IoResult Write(std::span<const std::span<const std::byte>> pieces) override {
    if (pieces.size() == 1) {
      return FromReturn(::send(fd_.get(), pieces[0].data(), pieces[0].size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    std::array<iovec, kMaxPieces> vectors;
    const std::size_t count = std::min(pieces.size(), vectors.size());
    for (std::size_t i = 0; i < count; ++i) {
      vectors[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    return FromReturn(::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
  }

 private:
  UniqueFd fd_;
};

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

std::unique_ptr<Stream> MakePlainStream(UniqueFd fd) {
  return std::make_unique<PlainStream>(std::move(fd));
}

}  // namespace tandem::http
