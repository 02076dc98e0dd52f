#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "api/base/result.h"

namespace tandem::bench {

// What the kernel has counted for one thread since it began.
struct ThreadWait {
  std::int64_t thread = 0;
  std::chrono::nanoseconds waited{0};  // For a core, ready to run.
  std::int64_t slices = 0;             // How often it got one.
};

// Of /proc/PID/task/TID/schedstat: nanoseconds on a core, nanoseconds waited for one, times that it got one. Empty when
// the text is something else.
[[nodiscard]] std::optional<ThreadWait> ParseSchedstat(std::string_view text);

// By the names that a server gives its threads (ARCHITECTURE.md): one that an answer waits for.
[[nodiscard]] bool AnswersRequests(std::string_view thread_name);

// How long the thread that waited longest between two looks did so, all its waits together. Pure. Threads that are in
// one of the two alone do not count.
[[nodiscard]] std::chrono::nanoseconds LongestDelay(const std::vector<ThreadWait>& before,
                                                    const std::vector<ThreadWait>& after);

// The threads of a server that requests wait for, as they are when it is made. Used by one thread.
class RunQueueWatch {
 public:
  // kUnavailable where the kernel does not count, or no such thread is there.
  [[nodiscard]] static Result<RunQueueWatch> Of(pid_t server);

  [[nodiscard]] Result<std::vector<ThreadWait>> Look() const;

 private:
  RunQueueWatch(pid_t server, std::vector<std::int64_t> threads) : server_(server), threads_(std::move(threads)) {}

  pid_t server_;
  std::vector<std::int64_t> threads_;
};

}  // namespace tandem::bench
