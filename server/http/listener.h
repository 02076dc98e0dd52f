#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/base/result.h"
#include "server/http/io_loops.h"
#include "server/http/stream.h"

namespace trantor {
class Channel;
}

namespace tandem::http {

// A listening socket on one loop. When the process is out of file descriptors a connection is taken and dropped, so
// that its client learns of it and the loop does not spin. Loop's thread only, but for Bind and destruction, which
// happen while it is not started.
class Listener {
 public:
  using OnAccept = std::function<void(UniqueFd fd)>;

  // `address` is a numeric address or a name; port 0 takes a free one.
  [[nodiscard]] static Result<std::unique_ptr<Listener>> Bind(const std::string& address, std::uint16_t port);
  ~Listener();

  [[nodiscard]] std::uint16_t port() const { return port_; }

  void Start(IoLoop& loop, OnAccept on_accept);
  // Takes what the kernel has already accepted, then closes.
  void Stop();

 private:
  Listener(UniqueFd fd, std::uint16_t port);
  void AcceptSome(int most);
  // Whether a connection was taken and dropped.
  [[nodiscard]] bool DropOne();

  UniqueFd fd_;
  UniqueFd spare_;  // Given up to take a connection that there is no descriptor for.
  const std::uint16_t port_;
  IoLoop* loop_ = nullptr;  // Outlives the listener's time between Start and Stop.
  OnAccept on_accept_;
  std::unique_ptr<trantor::Channel> channel_;
  // Lives as long as the listener is started; what is delayed looks at it first.
  std::shared_ptr<bool> alive_;
};

// Lets the process open as many files as the system permits; returns how many. For main().
std::size_t RaiseFileLimit();

}  // namespace tandem::http
