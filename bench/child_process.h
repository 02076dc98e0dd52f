#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "api/base/result.h"

namespace tandem::bench {

struct ChildCommand {
  std::vector<std::string> words;                                // The program (looked up in PATH) and its arguments.
  std::vector<std::pair<std::string, std::string>> environment;  // Beside that of this process.
  std::filesystem::path log;                                     // Takes what it prints.
  int input = -1;                                                // Its standard input; -1: it has none.
  std::vector<std::filesystem::path> groups;                     // Files that take it into control groups.
};

// A program in a process group of its own, so that Ctrl-C is for us alone. The destructor ends the whole group:
// SIGTERM, ten seconds of patience, SIGKILL for whoever is left. Should this process die first, the kernel kills the
// program itself. Used by one thread, which must live as long as the program should.
class ChildProcess {
 public:
  // The error says why the program cannot be run.
  [[nodiscard]] static Result<std::unique_ptr<ChildProcess>> Start(const ChildCommand& command);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // The program has ended; what it started may go on.
  [[nodiscard]] bool Ended() const;
  // Asks `ready` again and again until it says so. kUnavailable when the program ends first or the time is over;
  // kCancelled when `stop` says so.
  [[nodiscard]] Status WaitUntil(const std::function<bool()>& ready, const std::function<bool()>& stop,
                                 std::chrono::milliseconds patience) const;
  // Waits for the end of a program that ends by itself; kInternal with the end of its log unless it exits with 0.
  [[nodiscard]] Status WaitForEnd(const std::function<bool()>& stop) const;
  // The end of what it printed, and of that the last line.
  [[nodiscard]] std::string LogTail() const;
  [[nodiscard]] std::string LastLine() const;
  // A field of /proc/PID/status in bytes: "VmRSS", "RssAnon".
  [[nodiscard]] Result<std::uint64_t> MemoryBytes(const std::string& field) const;

 private:
  ChildProcess(pid_t pid, std::filesystem::path log) : pid_(pid), log_(std::move(log)) {}

  const pid_t pid_;
  const std::filesystem::path log_;
};

// The same field of this process.
[[nodiscard]] Result<std::uint64_t> OwnMemoryBytes(const std::string& field);

}  // namespace tandem::bench
