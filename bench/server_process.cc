#include "bench/server_process.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <json/json.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "bench/http_call.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookEvery = 1ms;
constexpr auto kTimeToStop = 10s;

// The child's side: nothing here may allocate, since other threads of the parent may hold locks.
[[noreturn]] void BecomeServer(const char* const* arguments, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  // Ctrl-C is for us alone: a server that goes away in the middle of a window would look like a failure.
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(arguments[0], const_cast<char* const*>(arguments));
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make() {
  std::error_code error;
  std::string name = (std::filesystem::temp_directory_path(error) / "tandem-bench-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr) {
    return Fail(ErrorCode::kInternal, "no temporary folder can be made: {}", std::strerror(errno));
  }
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(name));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::Start(const ServerCommand& command,
                                                            std::chrono::seconds patience) {
  if (access(command.program.c_str(), X_OK) != 0) {
    return Fail(ErrorCode::kNotFound, "there is no program '{}'; build the target tandem", command.program.string());
  }
  TANDEM_ASSIGN(auto folder, TemporaryFolder::Make());
  std::vector<std::string> words = {command.program.string(),
                                    "serve",
                                    "--model-repository",
                                    command.repository.string(),
                                    "--http-port",
                                    "0",
                                    "--grpc-port",
                                    "0",
                                    "--metrics-port",
                                    "0",
                                    "--ports-file",
                                    (folder->path() / "ports.json").string(),
                                    "--log-level",
                                    "warning"};
  words.insert(words.end(), command.flags.begin(), command.flags.end());
  std::vector<const char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  const int log = open((folder->path() / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  const pid_t parent = getpid();
  const MonotonicTime before = RealClock::Instance().Now();
  const pid_t pid = fork();
  if (pid == 0) BecomeServer(arguments.data(), log, parent);
  if (log >= 0) close(log);
  if (pid < 0) return Fail(ErrorCode::kInternal, "fork failed: {}", std::strerror(errno));
  std::unique_ptr<ServerProcess> server(new ServerProcess(std::move(folder), pid));
  TANDEM_TRY(server->WaitUntilReady(patience));
  server->start_to_ready_ = RealClock::Instance().Now() - before;
  return server;
}

ServerProcess::~ServerProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  const MonotonicTime limit = RealClock::Instance().Now() + kTimeToStop;
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (RealClock::Instance().Now() > limit) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

Status ServerProcess::WaitUntilReady(std::chrono::seconds patience) {
  const MonotonicTime limit = RealClock::Instance().Now() + patience;
  while (RealClock::Instance().Now() < limit) {
    if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = 0;
      return Fail(ErrorCode::kUnavailable, "the server ended while it started: {}", LogTail());
    }
    if (http_port_ != 0 || ReadPorts()) {
      const auto status = GetStatus(http_port_, "/v2/health/ready");
      if (status && *status == 200) return {};
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  return Fail(ErrorCode::kUnavailable, "the server was not ready within {} s: {}", patience.count(), LogTail());
}

bool ServerProcess::ReadPorts() {
  std::ifstream stream(folder_->path() / "ports.json");
  Json::Value json;
  std::string problem;
  // The file may be there before its content is.
  if (!stream || !Json::parseFromStream(Json::CharReaderBuilder(), stream, &json, &problem)) return false;
  if (!json.isObject() || !json["http"].isInt() || !json["grpc"].isInt()) return false;
  http_port_ = json["http"].asInt();
  grpc_port_ = json["grpc"].asInt();
  return http_port_ != 0;
}

std::string ServerProcess::LogTail() const {
  std::ifstream stream(folder_->path() / "log");
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::size_t kTail = 1000;
  return text.size() > kTail ? text.substr(text.size() - kTail) : text;
}

Result<std::uint64_t> ServerProcess::MemoryBytes(const std::string& field) const {
  std::ifstream stream("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(field + ":")) continue;
    std::istringstream rest(line.substr(field.size() + 1));
    std::uint64_t kilobytes = 0;
    if (rest >> kilobytes) return kilobytes * 1024;
  }
  return Fail(ErrorCode::kInternal, "the server's {} cannot be read", field);
}

}  // namespace tandem::bench
