#include "server/jobs/trainer_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/errno_text.h"
#include "api/base/format.h"
#include "profiler/machine.h"
#include "server/trainer/run_file.h"

namespace tandem::jobs {
namespace {

// Everything that the child needs, made before the fork: between fork and exec it may call next to nothing.
struct Child {
  std::string program;
  std::string run_file;
  std::string folder;
  std::vector<std::string> environment;
  std::vector<char*> arguments;
  std::vector<char*> variables;
  int log = -1;
  int events = -1;
  int board = -1;
  int bell = -1;
  int lane = -1;
  int sign = -1;
  int memory_group = -1;
  rlim_t memory = RLIM_INFINITY;
  TrainerClass rank = TrainerClass::kIdle;
  std::optional<cpu_set_t> cores;
  pid_t parent = 0;
};

// What libraries must have; nothing of ours or of the user's.
std::vector<std::string> CleanEnvironment(bool thrifty) {
  std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8"};
  if (thrifty)
    variables.emplace_back("GOMP_SPINCOUNT=1000");  // A few microseconds; GCC's OpenMP has up to milliseconds.
  // Sanitizers read theirs, and a program that was linked in a chroot finds its libraries by itself.
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "TMPDIR"}) {
    if (const char* const value = std::getenv(name)) variables.push_back(Format("{}={}", name, value));
  }
  return variables;
}

void WriteFile(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, text, std::strlen(text));
  ::close(fd);
}

[[noreturn]] void Become(const Child& child) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != child.parent) ::_exit(127);  // It has gone already.
  if (child.memory_group >= 0 && ::write(child.memory_group, "0", 1) != 1) ::_exit(127);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);

  // Where any of these is forbidden the trainer still runs, only less modestly.
  if (child.cores) ::sched_setaffinity(0, sizeof *child.cores, &*child.cores);
  const sched_param idle{};
  const bool is_idle = child.rank == TrainerClass::kIdle && ::sched_setscheduler(0, SCHED_IDLE, &idle) == 0;
  if (!is_idle && child.rank != TrainerClass::kNormal) ::setpriority(PRIO_PROCESS, 0, 19);
  WriteFile("/proc/self/oom_score_adj", "1000");
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // The server's own bound is not the trainer's.
  rlimit memory{};
  if (::getrlimit(RLIMIT_DATA, &memory) == 0) {
    if (child.memory < memory.rlim_max) memory.rlim_max = child.memory;
    memory.rlim_cur = memory.rlim_max;
    ::setrlimit(RLIMIT_DATA, &memory);
  }

  // Above the places that they go to, so that none overwrites another.
  const int log = ::fcntl(child.log, F_DUPFD, 16);
  const int events = ::fcntl(child.events, F_DUPFD, 16);
  const int board = ::fcntl(child.board, F_DUPFD, 16);
  const int sign = child.sign < 0 ? -1 : ::fcntl(child.sign, F_DUPFD, 16);
  const int nothing = ::open("/dev/null", O_RDWR);
  const int bell = ::fcntl(child.bell < 0 ? nothing : child.bell, F_DUPFD, 16);
  const int lane = ::fcntl(child.lane < 0 ? nothing : child.lane, F_DUPFD, 16);
  if (::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(log, STDOUT_FILENO) < 0 || ::dup2(log, STDERR_FILENO) < 0 ||
      ::dup2(events, kTrainerEventsFd) < 0 || ::dup2(board, kTrainerBoardFd) < 0 || ::dup2(bell, kTrainerBellFd) < 0 ||
      ::dup2(lane, kTrainerLaneFd) < 0 || ::chdir(child.folder.c_str()) != 0) {
    ::_exit(127);
  }
  const int shown = sign < 0 ? -1 : ::dup2(sign, kTrainerSignFd);
  ::syscall(SYS_close_range, shown < 0 ? kTrainerSignFd : kTrainerSignFd + 1, ~0U, 0);
  ::execve(child.program.c_str(), child.arguments.data(), child.variables.data());
  ::_exit(127);
}

struct Pages {
  std::uint64_t resident = 0;
  std::uint64_t shared = 0;  // Of files, and what processes share.
};

// None of a process that has gone.
Pages PagesOf(pid_t pid) {
  std::ifstream in(Format("/proc/{}/statm", pid));
  std::uint64_t total = 0;
  Pages pages;
  in >> total >> pages.resident >> pages.shared;
  return pages;
}

}  // namespace

std::string TrainerExit::Words() const {
  if (signal == SIGKILL) return "it was killed; when nobody did that, memory had run out";
  if (signal != 0) return Format("signal {} ({})", signal, ::strsignal(signal));
  if (code == 127) return "it could not be started";
  return Format("exit code {}", code);
}

Result<std::unique_ptr<TrainerProcess>> TrainerProcess::Start(const TrainerLaunch& launch) {
  const auto failed = [](const char* what) {
    return Fail(ErrorCode::kInternal, "a trainer cannot be started: {}: {}", what, ErrnoText());
  };
  if (::access(launch.program.c_str(), X_OK) != 0) return failed(launch.program.c_str());
  TANDEM_ASSIGN(auto board, TrainerBoard::Create());
  if (launch.takes_turns) board->SetTurn(Turn::kWait);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return failed("pipe");
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  const int log = ::open(LogFile(launch.folder).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int bell = launch.takes_turns ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
  if (log < 0 || (launch.takes_turns && bell < 0)) {
    const auto error = failed(log < 0 ? "its log" : "its bell");
    for (const int fd : {pipe[0], pipe[1], log, bell}) {
      if (fd >= 0) ::close(fd);
    }
    return error;
  }
  Child child{.program = launch.program,
              .run_file = launch.run_file,
              .folder = launch.folder,
              .environment = CleanEnvironment(launch.thrifty),
              .arguments = {},
              .variables = {},
              .log = log,
              .events = pipe[1],
              .board = board->fd(),
              .bell = bell,
              .lane = launch.lane,
              .sign = launch.sign,
              .memory_group = launch.memory_group,
              .memory = launch.memory ? static_cast<rlim_t>(*launch.memory) : RLIM_INFINITY,
              .rank = launch.rank,
              .cores = launch.cores.empty() ? std::nullopt : std::optional(CoreSet(launch.cores)),
              .parent = ::getpid()};
  child.arguments = {child.program.data(), child.run_file.data(), nullptr};
  for (std::string& variable : child.environment) child.variables.push_back(variable.data());
  child.variables.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid == 0) Become(child);
  const int error = errno;
  ::close(log);
  ::close(pipe[1]);
  if (pid < 0) {
    ::close(pipe[0]);
    if (bell >= 0) ::close(bell);
    errno = error;
    return failed("fork");
  }
  // It does both itself, too, before it has a second thread; but only this tells.
  const bool pinned = !child.cores || ::sched_setaffinity(pid, sizeof *child.cores, &*child.cores) == 0;
  std::string unpinned = pinned ? "" : ErrnoText();
  const sched_param idle{};
  const bool yields = launch.rank == TrainerClass::kIdle && ::sched_setscheduler(pid, SCHED_IDLE, &idle) == 0;
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return std::unique_ptr<TrainerProcess>(
      new TrainerProcess(pid, pidfd, pipe[0], bell, yields, std::move(unpinned), std::move(board)));
}

std::optional<TrainerExit> TrainerProcess::SeeEnd(int options) const {
  siginfo_t info{};
  // It stays to be reaped.
  const auto look = [&] { return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | options); };
  int failed = look();
  while (failed != 0 && errno == EINTR) failed = look();
  if (failed != 0 || info.si_pid == 0) return std::nullopt;
  const bool exited = info.si_code == CLD_EXITED;
  return TrainerExit{.code = exited ? info.si_status : 0, .signal = exited ? 0 : info.si_status};
}

void TrainerProcess::End() {
  Kill();
  if (!exit_) exit_ = SeeEnd(0).value_or(TrainerExit{.code = 0, .signal = SIGKILL});
}

TrainerProcess::~TrainerProcess() {
  End();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(events_);
  if (bell_ >= 0) ::close(bell_);
  if (pidfd_ >= 0) ::close(pidfd_);
}

void TrainerProcess::TakeLines(std::vector<TrainerEvent>& events) {
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (std::exchange(skipping_, false)) continue;
    auto event = ParseTrainerLine(std::string_view(unread_).substr(begin, end - begin));
    if (event) {
      events.push_back(*std::move(event));
    } else {
      ++bad_lines_;
    }
  }
  unread_.erase(0, begin);
  if (unread_.size() <= kMaxTrainerLine) return;
  unread_.clear();
  if (!std::exchange(skipping_, true)) ++bad_lines_;
}

std::vector<TrainerEvent> TrainerProcess::ReadEvents() {
  // A trainer that writes without end gets its turn again later.
  constexpr int kMostReads = 64;
  std::vector<TrainerEvent> events;
  std::array<char, 16 * 1024> buffer{};
  for (int i = 0; i < kMostReads && !silent_; ++i) {
    const ssize_t got = ::read(events_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    if (got == 0) silent_ = true;
    unread_.append(buffer.data(), static_cast<std::size_t>(got));
    TakeLines(events);
  }
  return events;
}

void TrainerProcess::Interrupt() {
  if (!exit_) ::kill(pid_, SIGTERM);
}

void TrainerProcess::Stop(bool stop) {
  if (!exit_) ::kill(pid_, stop ? SIGSTOP : SIGCONT);
}

bool TrainerProcess::Kill() {
  if (exit_) return true;
  ::kill(-pid_, SIGKILL);
  // Its group may not be there yet.
  return ::kill(pid_, SIGKILL) == 0;
}

std::optional<TrainerExit> TrainerProcess::Poll() {
  if (!exit_) exit_ = SeeEnd(WNOHANG);
  return exit_;
}

std::uint64_t TrainerProcess::ResidentBytes() const {
  return PagesOf(pid_).resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t TrainerProcess::AnonymousBytes() const {
  const Pages pages = PagesOf(pid_);
  return (pages.resident - std::min(pages.shared, pages.resident)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t TrainerProcess::PeakResidentBytes() const {
  constexpr std::uint64_t kUnit = 1024;
  constexpr std::string_view kField = "VmHWM:";
  std::ifstream in(Format("/proc/{}/status", pid_));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kField)) continue;
    std::uint64_t kilobytes = 0;
    std::istringstream(line.substr(kField.size())) >> kilobytes;
    return kilobytes * kUnit;
  }
  return 0;
}

std::chrono::nanoseconds TrainerProcess::CpuTime() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::string LogTail(const std::filesystem::path& folder, std::size_t most_bytes) {
  std::ifstream in(LogFile(folder), std::ios::binary | std::ios::ate);
  if (!in) return "";
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, in.tellg()));
  const std::size_t length = std::min(size, most_bytes);
  in.seekg(static_cast<std::streamoff>(size - length));
  std::string tail(length, '\0');
  in.read(tail.data(), static_cast<std::streamsize>(length));
  tail.resize(static_cast<std::size_t>(in.gcount()));
  // From the beginning of a line on, if there is one.
  if (const auto end = tail.find('\n'); length < size && end + 1 < tail.size()) tail.erase(0, end + 1);
  return tail;
}

}  // namespace tandem::jobs
