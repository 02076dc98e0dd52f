#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace tandem::http {

// A file descriptor that is closed with its owner.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// What came of one attempt to move bytes.
struct IoResult {
  enum class Kind { kBytes, kWouldBlock, kEnd, kBroken };
  Kind kind = Kind::kBroken;
  std::size_t bytes = 0;
};

// The bytes of one connection, plain or encrypted, on a non-blocking socket that it owns. Connection's thread only.
class Stream {
 public:
  virtual ~Stream() = default;

  [[nodiscard]] virtual int fd() const = 0;
  // kBytes when done, else kWouldBlock or kBroken.
  [[nodiscard]] virtual IoResult Handshake() = 0;
  [[nodiscard]] virtual IoResult Read(std::span<std::byte> into) = 0;
  // Writes the pieces in order, as far as possible.
  [[nodiscard]] virtual IoResult Write(std::span<const std::span<const std::byte>> pieces) = 0;
  // Whether the last attempt failed because the socket cannot be written just now.
  [[nodiscard]] virtual bool wants_write() const = 0;
  // Whether bytes may be left to read that the poller does not see.
  [[nodiscard]] virtual bool holds_bytes() const = 0;
  [[nodiscard]] virtual bool is_tls() const = 0;
  // Tells the peer that nothing more will come.
  virtual void ShutdownWrite() = 0;
};

[[nodiscard]] std::unique_ptr<Stream> MakePlainStream(UniqueFd fd);

}  // namespace tandem::http
