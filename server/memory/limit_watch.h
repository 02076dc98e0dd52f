#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "memory/device_budget.h"

namespace tandem {

// What memory this machine has, and what control groups leave of it. `root` stands for "/", for tests.
[[nodiscard]] MemoryThere ReadMemoryThere(const std::filesystem::path& root = "/");

// Tells when that has changed: a limit of a control group can be set at any time. Somebody who writes one is heard at
// once, where the kernel tells of it; what is not heard is seen by a look every `period`. A thread that sleeps else.
class LimitWatch {
 public:
  using Changed = std::function<void(const MemoryThere&)>;

  // `changed` is called on the thread, with what differs from `known` and from what it was told last. It must not
  // block.
  LimitWatch(std::filesystem::path root, const MemoryThere& known, std::chrono::milliseconds period, Changed changed);
  ~LimitWatch();
  LimitWatch(const LimitWatch&) = delete;
  LimitWatch& operator=(const LimitWatch&) = delete;

 private:
  void Run(MemoryThere known);
  // Files may come and go, as processes are moved to other groups.
  void WatchFiles();

  // Constant after construction.
  const std::filesystem::path root_;
  const std::chrono::milliseconds period_;
  const Changed changed_;
  const int stop_;    // Owned; readable when it is to end. -1: there is none to be had.
  const int notify_;  // Owned; readable when a file was written. -1: there is none to be had.

  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tandem
