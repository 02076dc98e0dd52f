#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// Names the calling thread for `top -H`, debuggers and traces; the system keeps 15 bytes. Threads that it makes and
// that do not name themselves inherit the name.
void NameThread(std::string_view name);

// The threads of this process that have that name, by the numbers that the system gave them, the smallest first.
[[nodiscard]] std::vector<int> ThreadsNamed(std::string_view name);

// Another name for a while: that of the threads which a library makes meanwhile. Used on one thread.
class ScopedThreadName {
 public:
  explicit ScopedThreadName(std::string_view name);
  ~ScopedThreadName() { NameThread(before_); }
  ScopedThreadName(const ScopedThreadName&) = delete;
  ScopedThreadName& operator=(const ScopedThreadName&) = delete;

 private:
  const std::string before_;
};

}  // namespace tandem
