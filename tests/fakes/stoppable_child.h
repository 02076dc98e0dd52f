#pragma once

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/format.h"
#include "tests/fakes/eventually.h"

namespace tandem {

// A process that does nothing but be there.
class StoppableChild {
 public:
  StoppableChild() : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) ::pause();
    }
    pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  }
  ~StoppableChild() {
    End();
    ::close(pidfd_);
  }
  StoppableChild(const StoppableChild&) = delete;
  StoppableChild& operator=(const StoppableChild&) = delete;

  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_; }
  void End() {
    if (std::exchange(ended_, true)) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] bool Stopped() const {
    std::ifstream in(Format("/proc/{}/stat", pid_));
    std::string text;
    std::getline(in, text);
    const auto name = text.rfind(')');
    return name != std::string::npos && text.size() > name + 2 && text[name + 2] == 'T';
  }
  [[nodiscard]] bool Becomes(bool stopped) const {
    return Eventually([&] { return Stopped() == stopped; });
  }

 private:
  const pid_t pid_;
  int pidfd_ = -1;
  bool ended_ = false;
};

}  // namespace tandem
