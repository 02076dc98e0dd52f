#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"

namespace tandem::loadgen {

enum class TransportOutcome : std::uint8_t { kAnswered, kTimedOut, kConnectFailed, kConnectionLost, kMalformed };

[[nodiscard]] constexpr std::string_view TransportOutcomeName(TransportOutcome outcome) {
  switch (outcome) {
    case TransportOutcome::kAnswered: return "answered";
    case TransportOutcome::kTimedOut: return "timed out";
    case TransportOutcome::kConnectFailed: return "could not connect";
    case TransportOutcome::kConnectionLost: return "connection lost";
    case TransportOutcome::kMalformed: return "malformed answer";
  }
  return "unknown";
}

// What became of one request. Times that were never reached are zero.
struct RequestRecord {
  std::size_t request = 0;  // Index into the transport's prepared requests.
  MonotonicTime scheduled;  // As given to Send().
  MonotonicTime submitted;  // When Send() was called.
  MonotonicTime sent;       // Just before the first byte was written; later than `submitted` when it had to queue.
  MonotonicTime first_byte;
  MonotonicTime done;
  TransportOutcome outcome = TransportOutcome::kAnswered;
  int status = 0;           // HTTP status, or 0.
  std::uint64_t bytes = 0;  // Body bytes of the answer.
  bool queued = false;      // No connection was free when it was submitted.
  std::string body;         // Only when the request asks for it.
};

// Sends prepared requests and hears the answers. Implemented over HTTP and gRPC, and by a fake in tests. Used by one
// thread.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends prepared request number `request`; never blocks. Its record comes out of a later Poll(), exactly once.
  virtual void Send(std::size_t request, MonotonicTime scheduled) = 0;

  // Handles what has happened, and waits until `until` at the latest when nothing has. Appends what was finished.
  virtual void Poll(MonotonicTime until, std::vector<RequestRecord>& finished) = 0;

  // Requests sent whose record is still to come.
  [[nodiscard]] virtual std::size_t outstanding() const = 0;

  // What the transport's own thread, if it has one, has computed so far: a generator can be the bottleneck there, too.
  [[nodiscard]] virtual std::chrono::nanoseconds OwnCpuTime() const { return std::chrono::nanoseconds(0); }
};

}  // namespace tandem::loadgen
