#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace tandem::http {

// What a client read of one answer.
struct RawAnswer {
  int status = 0;  // 0: the connection was closed instead.
  std::string head;
  std::string body;
};

// A blocking client that sends exactly the bytes it is given. Waits at most ten seconds for anything.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const timeval patience{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  // False when the server has closed.
  bool Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  void SendUrgent(char c) { EXPECT_EQ(::send(fd_, &c, 1, MSG_OOB | MSG_NOSIGNAL), 1); }

  // The next answer, by its Content-Length.
  RawAnswer Read(bool head_only = false) {
    RawAnswer answer;
    while (!buffer_.contains("\r\n\r\n")) {
      if (!Fill()) return answer;
    }
    const std::size_t end = buffer_.find("\r\n\r\n") + 4;
    answer.head = buffer_.substr(0, end);
    buffer_.erase(0, end);
    answer.status = std::atoi(answer.head.c_str() + 9);
    const std::size_t field = answer.head.find("Content-Length: ");
    const std::size_t size =
        head_only || field == std::string::npos ? 0 : std::strtoull(answer.head.c_str() + field + 16, nullptr, 10);
    while (buffer_.size() < size) {
      if (!Fill()) return {};
    }
    answer.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return answer;
  }

  RawAnswer Ask(std::string_view text) {
    Send(text);
    return Read();
  }

  // Reads so many bytes of whatever comes; false when it ends before.
  [[nodiscard]] bool Take(std::size_t size) {
    while (buffer_.size() < size) {
      char bytes[16384];
      const ssize_t n = ::recv(fd_, bytes, std::min(sizeof bytes, size - buffer_.size()), 0);
      if (n <= 0) return false;
      buffer_.append(bytes, static_cast<std::size_t>(n));
    }
    buffer_.erase(0, size);
    return true;
  }

  // Everything up to the server's close.
  std::string ReadToEnd() {
    while (Fill()) {
    }
    return std::exchange(buffer_, {});
  }

  [[nodiscard]] bool Readable(int milliseconds) const {
    pollfd poll{fd_, POLLIN, 0};
    return !buffer_.empty() || ::poll(&poll, 1, milliseconds) > 0;
  }

  [[nodiscard]] int fd() const { return fd_; }
  void HalfClose() { ::shutdown(fd_, SHUT_WR); }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void Reset() {
    const linger abort{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    Close();
  }

 private:
  bool Fill() {
    char bytes[16384];
    const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n > 0) buffer_.append(bytes, static_cast<std::size_t>(n));
    return n > 0;
  }

  int fd_;
  std::string buffer_;
};

// Waits for what another thread is about to bring; false after ten seconds.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace tandem::http
