#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/result.h"

namespace tandem::bench {

// A folder of our own, removed with all that is in it.
class TemporaryFolder {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TemporaryFolder>> Make();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  const std::filesystem::path path_;
};

struct ServerCommand {
  std::filesystem::path program;     // The tandem program.
  std::filesystem::path repository;  // Of models.
  std::vector<std::string> flags;    // Beyond those that the process needs to be found.
};

// `tandem serve` as a process of its own, on free ports of the loopback. Ended with SIGTERM by the destructor, and by
// the kernel should this process die first. Used by one thread, which must live as long as the server should.
class ServerProcess {
 public:
  // Starts it and waits until it says that it is ready.
  [[nodiscard]] static Result<std::unique_ptr<ServerProcess>> Start(const ServerCommand& command,
                                                                    std::chrono::seconds patience);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  [[nodiscard]] int http_port() const { return http_port_; }
  [[nodiscard]] int grpc_port() const { return grpc_port_; }
  // From just before the process was made to the first positive answer of /v2/health/ready.
  [[nodiscard]] std::chrono::nanoseconds start_to_ready() const { return start_to_ready_; }

  // A field of /proc/PID/status in bytes: "VmRSS", "RssAnon".
  [[nodiscard]] Result<std::uint64_t> MemoryBytes(const std::string& field) const;

 private:
  ServerProcess(std::unique_ptr<TemporaryFolder> folder, pid_t pid) : folder_(std::move(folder)), pid_(pid) {}
  Status WaitUntilReady(std::chrono::seconds patience);
  bool ReadPorts();
  [[nodiscard]] std::string LogTail() const;

  const std::unique_ptr<TemporaryFolder> folder_;
  pid_t pid_;  // 0 once it has ended.
  int http_port_ = 0;
  int grpc_port_ = 0;
  std::chrono::nanoseconds start_to_ready_{0};
};

}  // namespace tandem::bench
