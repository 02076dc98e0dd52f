#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "api/base/result.h"

namespace tandem::grpc_front {

// Listens on one address and hands accepted sockets over, from a thread of its own. gRPC 1.51's own listener stops for
// ever when accept() fails for want of descriptors, and has no limit on connections: this one waits and goes on, and
// closes what is above the limit at once. Made and stopped by GrpcServer.
class ConnectionAcceptor {
 public:
  // Owns a non-blocking socket from then on. Called on the acceptor's thread.
  using Hand = std::function<void(int fd)>;

  // Binds and listens. `address` is a name or a number, IPv4 or IPv6; `port` 0 takes a free one. An error names the
  // address, the port and the reason.
  [[nodiscard]] static Result<std::unique_ptr<ConnectionAcceptor>> Listen(const std::string& address, int port,
                                                                          int max_connections);
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  [[nodiscard]] int port() const { return port_; }

  // Begins to accept. Once.
  void Start(Hand hand);
  // Closes the listening socket and joins the thread; connections that were handed over are not touched.
  void Stop();

 private:
  // A socket that was handed over, known again by its inode: its new owner closes it without telling.
  struct Handed {
    int fd = -1;
    ino_t inode = 0;
  };

  ConnectionAcceptor(int listener, int stop_event, int port, int max_connections);
  void Run();
  // False when there is nothing to accept, or nothing to accept it with, for now.
  [[nodiscard]] bool AcceptOne();
  [[nodiscard]] bool HasRoom();
  void WaitForStop(int milliseconds) const;

  // Constant after construction, but for the descriptors, which Stop() closes once the thread has ended.
  int listener_;
  int stop_event_;
  const int port_;
  const int max_connections_;

  // The acceptor's thread only.
  Hand hand_;
  std::vector<Handed> handed_;

  std::thread thread_;
};

}  // namespace tandem::grpc_front
