#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>

#include "api/base/result.h"
#include "loadgen/latency_histogram.h"
#include "loadgen/socket_address.h"

namespace tandem::bench {

// What the machine itself takes for a request and an answer of some size over a loopback connection, with nothing done
// in between: two threads that sleep until there is something to read. What a server adds is on top of this.
class Loopback {
 public:
  // Connects the two and starts the thread that answers.
  [[nodiscard]] static Result<std::unique_ptr<Loopback>> Make(std::size_t request_bytes, std::size_t answer_bytes);
  ~Loopback();
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  // One exchange after the other, for `window` after `warmup`.
  [[nodiscard]] Result<loadgen::LatencyHistogram> Time(std::chrono::nanoseconds warmup,
                                                       std::chrono::nanoseconds window);

 private:
  Loopback(loadgen::Socket client, loadgen::Socket server, std::size_t request_bytes, std::size_t answer_bytes);

  // Constant after construction.
  const std::size_t request_bytes_;
  const std::size_t answer_bytes_;
  loadgen::Socket client_;
  loadgen::Socket server_;
  std::thread answering_;  // Ends when the client's socket is closed.
};

}  // namespace tandem::bench
