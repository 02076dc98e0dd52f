#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace tandem {

// Until it is so, or for so long that it never will be.
[[nodiscard]] inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace tandem
