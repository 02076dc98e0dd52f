#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "bench/child_process.h"
#include "bench/temporary_folder.h"

namespace tandem::bench {

struct ServerCommand {
  std::filesystem::path program;              // The tandem program.
  std::filesystem::path repository;           // Of models.
  std::vector<std::string> flags;             // Beyond those that the process needs to be found.
  std::vector<std::filesystem::path> groups;  // As a ChildCommand has them.
};

// `tandem serve` as a process of its own, on free ports of the loopback, ended with its owner. Used by one thread,
// which must live as long as the server should.
class ServerProcess {
 public:
  // Starts it and waits until it says that it is ready.
  [[nodiscard]] static Result<std::unique_ptr<ServerProcess>> Start(const ServerCommand& command,
                                                                    std::chrono::seconds patience);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] int http_port() const { return http_port_; }
  [[nodiscard]] int grpc_port() const { return grpc_port_; }
  // From just before the process was made to the first positive answer of /v2/health/ready.
  [[nodiscard]] std::chrono::nanoseconds start_to_ready() const { return start_to_ready_; }

  // That it has used so far; without its trainers.
  [[nodiscard]] Result<double> CpuSeconds() const;
  // A field of /proc/PID/status in bytes: "VmRSS", "RssAnon".
  [[nodiscard]] Result<std::uint64_t> MemoryBytes(const std::string& field) const {
    return process_->MemoryBytes(field);
  }

 private:
  ServerProcess(std::unique_ptr<TemporaryFolder> folder, std::unique_ptr<ChildProcess> process)
      : folder_(std::move(folder)), process_(std::move(process)) {}
  bool ReadPorts();
  bool Ready();

  // Declared first, so that it goes last.
  const std::unique_ptr<TemporaryFolder> folder_;
  const std::unique_ptr<ChildProcess> process_;
  int http_port_ = 0;
  int grpc_port_ = 0;
  std::chrono::nanoseconds start_to_ready_{0};
};

}  // namespace tandem::bench
