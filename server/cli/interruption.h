#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "api/base/mutex.h"

namespace tandem::cli {

// Hears SIGINT, SIGTERM and SIGHUP for a command that has something to clean up. The first one only raises a flag, and
// the command ends in good order; a second one ends the process at once. Made by main before any other thread starts,
// so that all of them leave these signals to this one; one at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  [[nodiscard]] const std::atomic<bool>& flag() const { return flag_; }
  [[nodiscard]] bool raised() const { return flag_.load(); }
  // What a shell makes of that signal: 130 for SIGINT. Once raised.
  [[nodiscard]] int exit_code() const { return 128 + signal_.load(); }
  // Raises the flag as `signal` would.
  void Raise(int signal);

  // What the second signal does before it ends the process, on a thread of its own.
  void BeforeLeavingAtOnce(std::function<void()> clean_up);

 private:
  std::atomic<bool> flag_{false};
  std::atomic<int> signal_{0};
  Mutex mu_;
  std::function<void()> clean_up_ GUARDED_BY(mu_);
  std::jthread listener_;  // Last: it uses the above.
};

}  // namespace tandem::cli
