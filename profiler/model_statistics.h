#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>

#include "api/base/clock.h"
#include "api/base/infer_request.h"
#include "api/base/mutex.h"

namespace tandem {

// A count and the time it took, as the protocol's statistics report it.
struct DurationTotal {
  std::uint64_t count = 0;
  std::uint64_t ns = 0;

  void Add(std::chrono::nanoseconds duration, std::uint64_t times = 1) {
    count += times;
    ns += static_cast<std::uint64_t>(duration.count()) * times;
  }
};

// Why a request failed, in the words of Triton's metrics.
enum class FailureReason { kRejected, kCanceled, kBackend, kOther };
inline constexpr std::size_t kFailureReasonCount = 4;

// Totals since the version was loaded.
struct ModelTotals {
  std::uint64_t last_inference_ms = 0;  // Wall time, milliseconds since the epoch.
  std::uint64_t inference_count = 0;    // Batched elements: a request of batch 8 counts 8.
  std::uint64_t execution_count = 0;    // Runs of the session.
  DurationTotal success, fail, queue, compute_input, compute_infer, compute_output;

  std::array<std::uint64_t, kFailureReasonCount> failures{};  // By FailureReason; together fail.count.

  struct Batch {
    DurationTotal compute_input, compute_infer, compute_output;
  };
  std::map<std::uint64_t, Batch> batches;  // By the size of the executed batch.
};

// Statistics of one model version. Thread-safe; written by the dispatcher, read by the statistics and metrics calls.
class ModelStatistics {
 public:
  // One run of the session over `batch_size` elements.
  void RecordExecution(std::uint64_t batch_size, const InferTiming& timing, WallTime now);
  // One request that was answered, counting for `elements`; `total` is from arrival to answer.
  void RecordSuccess(std::uint64_t elements, const InferTiming& timing, std::chrono::nanoseconds total);
  void RecordFailure(FailureReason reason, std::chrono::nanoseconds total);

  [[nodiscard]] ModelTotals Totals() const;

 private:
  mutable Mutex mu_;
  ModelTotals totals_ GUARDED_BY(mu_);
};

}  // namespace tandem
