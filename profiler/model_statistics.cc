#include "profiler/model_statistics.h"

namespace tandem {

void ModelStatistics::RecordExecution(std::uint64_t batch_size, const InferTiming& timing, WallTime now) {
  MutexLock lock(mu_);
  ++totals_.execution_count;
  totals_.last_inference_ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
  ModelTotals::Batch& batch = totals_.batches[batch_size];
  batch.compute_input.Add(timing.compute_input);
  batch.compute_infer.Add(timing.compute_infer);
  batch.compute_output.Add(timing.compute_output);
}

void ModelStatistics::RecordSuccess(std::uint64_t elements, const InferTiming& timing, std::chrono::nanoseconds total) {
  MutexLock lock(mu_);
  totals_.inference_count += elements;
  totals_.success.Add(total);
  totals_.queue.Add(timing.queue);
  totals_.compute_input.Add(timing.compute_input);
  totals_.compute_infer.Add(timing.compute_infer);
  totals_.compute_output.Add(timing.compute_output);
}

void ModelStatistics::RecordFailure(FailureReason reason, std::chrono::nanoseconds total) {
  MutexLock lock(mu_);
  ++totals_.failures[static_cast<std::size_t>(reason)];
  totals_.fail.Add(total);
}

ModelTotals ModelStatistics::Totals() const {
  MutexLock lock(mu_);
  return totals_;
}

}  // namespace tandem
