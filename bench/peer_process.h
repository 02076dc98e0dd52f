#pragma once

#include <memory>
#include <string>

#include "api/base/result.h"
#include "bench/child_process.h"
#include "bench/context.h"
#include "bench/peer_spec.h"

namespace tandem::bench {

// A scenario's peer as a process of its own on free ports of the loopback, ended with its whole process group by the
// destructor. Used by one thread, which must live as long as the peer should.
class PeerProcess {
 public:
  // Starts it with the model (none when empty) and waits until it says that it is ready. kNotFound when its packages
  // are not installed, with what to do; kUnavailable when it does not get ready, with the last line of its log, which
  // is kept; kCancelled when interrupted.
  [[nodiscard]] static Result<std::unique_ptr<PeerProcess>> Start(const BenchContext& context, const PeerSpec& peer,
                                                                  const std::string& model);
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int grpc_port() const { return grpc_port_; }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  // Copies what it has printed so far to a file that outlives the run, and says where: for a message.
  [[nodiscard]] std::string KeepLog() const;

 private:
  PeerProcess(std::string name, std::filesystem::path log, int port, int grpc_port)
      : name_(std::move(name)), log_(std::move(log)), port_(port), grpc_port_(grpc_port) {}

  const std::string name_;
  const std::filesystem::path log_;
  const int port_;
  const int grpc_port_;
  std::unique_ptr<ChildProcess> process_;  // Set by Start().
};

}  // namespace tandem::bench
