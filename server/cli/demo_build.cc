#include "server/cli/demo_build.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/errno_text.h"
#include "server/cli/train_progress.h"

namespace tandem::cli {
namespace {

// Of a build that is told to stop.
constexpr std::chrono::seconds kPatience{10};

[[noreturn]] void Become(char* const* words, int output, pid_t parent) {
  ::setpgid(0, 0);
  // The build ends its compilers when it is told so by a signal that it can hear.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A shell cannot trap what was ignored when it started, and by SIGTERM it is told to end.
  for (const int number : {SIGPIPE, SIGTERM}) ::signal(number, SIG_DFL);
  const sched_param idle{};
  if (::sched_setscheduler(0, SCHED_IDLE, &idle) != 0) ::setpriority(PRIO_PROCESS, 0, 19);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0) {
    ::_exit(127);
  }
  ::execv(words[0], words);
  ::_exit(127);
}

std::optional<int> TakeNumber(std::string_view& text, std::string_view before, char after) {
  if (!text.starts_with(before)) return std::nullopt;
  text.remove_prefix(before.size());
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != after || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

std::optional<BuildSteps> ReadBuildSteps(std::string_view line) {
  const auto done = TakeNumber(line, "[", '/');
  const auto total = done ? TakeNumber(line, "", ']') : std::nullopt;
  if (!total || *total < *done) return std::nullopt;
  return BuildSteps{.done = *done, .total = *total};
}

Result<std::unique_ptr<TrainerBuild>> TrainerBuild::Start(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto failed = [&words] {
    return Fail(ErrorCode::kInternal, "'{}' cannot be run: {}", words.front(), ErrnoText());
  };
  if (::access(words.front().c_str(), X_OK) != 0) return failed();
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return failed();
  ::fcntl(pipe[0], F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) Become(arguments.data(), pipe[1], parent);
  const int error = errno;
  ::close(pipe[1]);
  if (pid < 0) {
    ::close(pipe[0]);
    errno = error;
    return failed();
  }
  return std::unique_ptr<TrainerBuild>(new TrainerBuild(pid, pipe[0]));
}

TrainerBuild::~TrainerBuild() {
  if (!ended()) {
    // Its group may not be there yet.
    if (::kill(-pid_, SIGTERM) != 0) ::kill(pid_, SIGTERM);
    constexpr std::chrono::milliseconds kTick{10};
    for (std::chrono::milliseconds waited{0}; !ended() && waited < kPatience; waited += kTick) {
      std::this_thread::sleep_for(kTick);
      Look();
    }
  }
  if (!ended()) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) != pid_ && errno == EINTR) {
    }
  }
  ::close(output_);
}

void TrainerBuild::Read() {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = ::read(output_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    has_spoken_ = true;
    said_.append(buffer.data(), static_cast<std::size_t>(got));
    if (said_.size() > 2 * kKeptBytes) said_.erase(0, said_.size() - kKeptBytes);
  }
  // The last whole line that tells of steps.
  for (std::size_t end = said_.rfind('\n'); end != std::string::npos && end > 0;) {
    const std::size_t before = said_.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    if (const auto steps = ReadBuildSteps(std::string_view(said_).substr(begin, end - begin))) {
      steps_ = steps;
      return;
    }
    end = before;
  }
}

void TrainerBuild::Look() {
  if (ended()) return;
  int status = 0;
  const bool gone = ::waitpid(pid_, &status, WNOHANG) == pid_;
  Read();  // After it has gone: nothing that it said is missed.
  if (gone) exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string TrainerBuild::Problem() const {
  std::string_view said = said_;
  while (said.ends_with('\n')) said.remove_suffix(1);
  // As the launcher words its errors, with advice behind; else the last line.
  constexpr std::string_view kError = "tandem: error: ";
  const std::size_t error = said.rfind(kError);
  if (error != std::string_view::npos) {
    said.remove_prefix(error + kError.size());
  } else if (const std::size_t line = said.rfind('\n'); line != std::string_view::npos) {
    said.remove_prefix(line + 1);
  }
  return said.empty() ? "exit code " + std::to_string(exit_code_.value_or(0)) : PrintableLines(said);
}

}  // namespace tandem::cli
