#include "server/trace/batch_runs.h"

namespace tandem::trace {

BatchRuns ReadBatchRuns(const FlightRecorder& recorder) {
  BatchRuns runs;
  recorder.requests().ForEach([&](const FlightRecord& record) {
    if (const auto began = As<BatchBegan>(record)) {
      runs[began->batch] = {.batch = began->batch,
                            .model = recorder.names().NameOf(began->model),
                            .version = began->version,
                            .elements = began->elements,
                            .requests = began->requests,
                            .worker = began->worker,
                            .began = began->at,
                            .ended = {},
                            .error = {},
                            .expected = began->expected};
    } else if (const auto ended = As<BatchEnded>(record)) {
      const auto found = runs.find(ended->batch);
      if (found == runs.end()) return;
      found->second.ended = ended->at;
      found->second.error = ended->error;
    }
  });
  std::map<std::uint16_t, MonotonicTime> next;  // Of each worker, the beginning of what came after.
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    BatchRun& one = run->second;
    if (one.worker == kFrontEnd) continue;
    const auto after = next.find(one.worker);
    if (!one.ended && after != next.end()) one.ended = after->second;
    next[one.worker] = one.began;
  }
  return runs;
}

}  // namespace tandem::trace
