#pragma once

#include <cstdint>

#include <sys/types.h>

#include "api/base/result.h"
#include "loadgen/http_request.h"

namespace tandem::bench {

struct RunQueueProbe {
  pid_t server = 0;
  int port = 0;  // On the loopback.
  loadgen::HttpRequest request;
  int requests = 1;
  std::uint64_t seed = 1;  // Of the pauses.
};

// Sends requests one at a time, each after a random pause in which nobody asks for anything, and looks after each how
// long the server's threads have waited for a core because of it: LongestDelay() in run_queue.h. The p99 of all
// requests in seconds. Blocks.
[[nodiscard]] Result<double> Probe(const RunQueueProbe& probe);

}  // namespace tandem::bench
