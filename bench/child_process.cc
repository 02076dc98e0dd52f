#include "bench/child_process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "loadgen/socket_address.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;
using loadgen::Socket;

constexpr auto kLookEvery = 1ms;
constexpr auto kTimeToStop = 10s;

// The child's side: nothing here may allocate, since other threads of the parent may hold locks.
struct Program {
  char* const* arguments;
  char* const* environment;
  int input;
  int log;
  int problem;
  const std::vector<Socket>& groups;
  pid_t parent;
};

[[noreturn]] void Become(const Program& program) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != program.parent) _exit(127);
  setpgid(0, 0);
  // What this process ignores would be ignored there, too.
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
  dup2(program.input >= 0 ? program.input : open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(program.log, STDOUT_FILENO);
  dup2(program.log, STDERR_FILENO);
  bool entered = true;
  for (const Socket& group : program.groups) entered = entered && write(group.fd(), "0", 1) == 1;
  if (entered) execvpe(program.arguments[0], program.arguments, program.environment);
  const int error = errno;
  (void)!write(program.problem, &error, sizeof error);
  _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This process's environment with what the command adds or replaces.
std::vector<std::string> MergedEnvironment(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!std::ranges::contains(added, name, &std::pair<std::string, std::string>::first)) merged.emplace_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(Format("{}={}", name, value));
  return merged;
}

Result<std::uint64_t> MemoryField(const std::string& process, const std::string& field) {
  std::ifstream stream("/proc/" + process + "/status");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(field + ":")) continue;
    std::istringstream rest(line.substr(field.size() + 1));
    std::uint64_t kilobytes = 0;
    if (rest >> kilobytes) return kilobytes * 1024;
  }
  return Fail(ErrorCode::kInternal, "{} of process {} cannot be read", field, process);
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildCommand& command) {
  if (command.words.empty()) return Invalid("the command is empty");
  std::vector<std::string> words = command.words;
  std::vector<std::string> variables = MergedEnvironment(command.environment);
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> environment = Pointers(variables);
  const Socket log(open(command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  int ends[2];
  if (!log.open() || pipe2(ends, O_CLOEXEC) != 0) {
    return Fail(ErrorCode::kInternal, "'{}' cannot be started: {}", words[0], std::strerror(errno));
  }
  const Socket reading(ends[0]);
  Socket writing(ends[1]);
  std::vector<Socket> groups;
  for (const auto& file : command.groups) {
    if (!groups.emplace_back(open(file.c_str(), O_WRONLY | O_CLOEXEC)).open()) {
      return Fail(ErrorCode::kUnavailable, "'{}' cannot be opened: {}", file.string(), std::strerror(errno));
    }
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    Become({.arguments = arguments.data(),
            .environment = environment.data(),
            .input = command.input,
            .log = log.fd(),
            .problem = writing.fd(),
            .groups = groups,
            .parent = parent});
  }
  if (pid < 0) return Fail(ErrorCode::kInternal, "'{}' cannot be started: {}", words[0], std::strerror(errno));
  writing.Close();
  // Said by both sides, so that the group is there whoever comes first.
  setpgid(pid, pid);
  std::unique_ptr<ChildProcess> child(new ChildProcess(pid, command.log));
  int error = 0;
  // Closed by exec: nothing to read means that the program runs.
  if (read(reading.fd(), &error, sizeof error) == sizeof error) {
    return Fail(ErrorCode::kNotFound, "'{}' cannot be run: {}", words[0], std::strerror(error));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  // The program is not reaped before its group has been killed: until then nobody else can be given its number.
  kill(-pid_, SIGTERM);
  const MonotonicTime limit = RealClock::Instance().Now() + kTimeToStop;
  while (!Ended() && RealClock::Instance().Now() < limit) std::this_thread::sleep_for(kLookEvery);
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool ChildProcess::Ended() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
}

Status ChildProcess::WaitUntil(const std::function<bool()>& ready, const std::function<bool()>& stop,
                               std::chrono::milliseconds patience) const {
  const MonotonicTime limit = RealClock::Instance().Now() + patience;
  while (true) {
    const bool ended = Ended();
    if (!ended && ready()) return {};
    if (ended) return Fail(ErrorCode::kUnavailable, "it ended while it started");
    if (stop && stop()) return Fail(ErrorCode::kCancelled, "interrupted");
    if (RealClock::Instance().Now() >= limit) {
      const double seconds = std::chrono::duration<double>(patience).count();
      return Fail(ErrorCode::kUnavailable, "it was not ready within {} s", seconds);
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

Status ChildProcess::WaitForEnd(const std::function<bool()>& stop) const {
  while (!Ended()) {
    if (stop && stop()) return Fail(ErrorCode::kCancelled, "interrupted");
    std::this_thread::sleep_for(kLookEvery);
  }
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (info.si_code == CLD_EXITED && info.si_status == 0) return {};
  return Fail(ErrorCode::kInternal, "it ended with {}: {}", info.si_status, LogTail());
}

std::string ChildProcess::LogTail() const {
  std::ifstream stream(log_);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::size_t kTail = 1000;
  if (text.size() > kTail) text.erase(0, text.size() - kTail);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "it printed nothing" : text;
}

std::string ChildProcess::LastLine() const {
  const std::string tail = LogTail();
  const std::size_t newline = tail.rfind('\n');
  return newline == std::string::npos ? tail : tail.substr(newline + 1);
}

Result<std::uint64_t> ChildProcess::MemoryBytes(const std::string& field) const {
  return MemoryField(std::to_string(pid_), field);
}

Result<std::uint64_t> OwnMemoryBytes(const std::string& field) {
  return MemoryField("self", field);
}

}  // namespace tandem::bench
