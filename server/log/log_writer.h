#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace tandem {

// Writes lines to a descriptor on a thread of its own, so that nobody who has something to say waits for whoever reads
// it. What finds too much waiting is dropped and counted, and so is what cannot be written; the count stands where the
// lines would have. Thread-safe. Whoever destroys it does not wait for the thread, which may be held up for ever: it
// ends by itself, and without writing what is left.
class LogWriter {
 public:
  // The line that says how many were dropped; called on the writer's thread.
  using Notice = std::function<std::string(std::uint64_t dropped)>;

  // The descriptor stays open as long as the process, and so does what `notice` uses.
  LogWriter(int fd, std::size_t max_waiting_bytes, Notice notice);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Never blocks. A line ends with a line break.
  void Write(std::string line);
  // Waits until all that was given has been written or dropped; false when the time is over first.
  bool Flush(std::chrono::milliseconds at_most);
  // Since the beginning.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Shared;
  // Shared with the thread, which may outlive this object.
  const std::shared_ptr<Shared> shared_;
};

}  // namespace tandem
