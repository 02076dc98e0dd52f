#include "loadgen/http_connection.h"

#include <algorithm>
#include <array>

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

HttpConnection::ConnectResult HttpConnection::FinishConnect() {
  if (phase_ == Phase::kConnecting) {
    if (ConnectError(fd()) != 0) return ConnectResult::kFailed;
    phase_ = Phase::kHandshake;
  }
  switch (stream_.Handshake().kind) {
    case IoResult::Kind::kDone: phase_ = Phase::kReady; return ConnectResult::kReady;
    case IoResult::Kind::kBlocked: return ConnectResult::kBlocked;
    default: return ConnectResult::kFailed;
  }
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
    const IoResult written = stream_.Write({vectors.data(), used});
    if (written.kind == IoResult::Kind::kBlocked) return WriteResult::kBlocked;
    if (written.kind != IoResult::Kind::kDone) return WriteResult::kLost;
    std::size_t left = written.bytes;
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
    const IoResult read = stream_.Read(scratch);
    switch (read.kind) {
      case IoResult::Kind::kDone: break;
      case IoResult::Kind::kBlocked: return ReadResult::kMore;
      case IoResult::Kind::kBroken: return ReadResult::kLost;
      case IoResult::Kind::kEnd:
        reader_.Close();
        return request_ != nullptr && reader_.done() ? ReadResult::kAnswered : ReadResult::kLost;
    }
    // Nothing was asked for: whatever this is, the connection is of no use any more.
    if (request_ == nullptr) return ReadResult::kLost;
    surplus_ = reader_.Feed({scratch.data(), read.bytes}) < read.bytes;
    if (reader_.malformed()) return ReadResult::kMalformed;
    if (reader_.done()) return ReadResult::kAnswered;
    // What is left in the socket raises the next event; what TLS holds back does not.
    if (!stream_.holds_bytes()) return ReadResult::kMore;
  }
}

void HttpConnection::Finish() {
  request_ = nullptr;
  ++answered_;
}

bool HttpConnection::reusable() const {
  const bool written = request_ == nullptr || part_ == PartCount(*request_);
  return reader_.done() && reader_.keep_alive() && written && !surplus_ && !stream_.holds_bytes();
}

}  // namespace tandem::loadgen
