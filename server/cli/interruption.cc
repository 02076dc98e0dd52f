#include "server/cli/interruption.h"

#include <ctime>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace tandem::cli {
namespace {

// Without those that whoever started us wants ignored, as nohup does.
sigset_t Signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

Interruption::Interruption() {
  const sigset_t signals = Signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  listener_ = std::jthread([this, signals](const std::stop_token& stop) {
    const timespec tick{.tv_sec = 0, .tv_nsec = 20'000'000};
    while (!stop.stop_requested()) {
      const int signal = ::sigtimedwait(&signals, nullptr, &tick);
      if (signal <= 0) continue;
      if (raised()) {
        std::function<void()> clean_up;
        {
          const MutexLock lock(mu_);
          clean_up = std::exchange(clean_up_, {});
        }
        if (clean_up) clean_up();
        ::_exit(128 + signal);
      }
      Raise(signal);
    }
  });
}

Interruption::~Interruption() = default;

void Interruption::Raise(int signal) {
  int none = 0;
  signal_.compare_exchange_strong(none, signal);
  flag_ = true;
}

void Interruption::BeforeLeavingAtOnce(std::function<void()> clean_up) {
  const MutexLock lock(mu_);
  clean_up_ = std::move(clean_up);
}

}  // namespace tandem::cli
