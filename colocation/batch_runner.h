#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "api/base/clock.h"
#include "colocation/work_item.h"
#include "profiler/flight_recorder.h"
#include "profiler/latency_model.h"
#include "profiler/training_toll.h"

namespace tandem {

// A run that ended well.
struct RunRecord {
  std::int64_t elements = 0;
  std::chrono::nanoseconds took{0};        // With joining inputs and splitting outputs.
  std::optional<RunPrediction> predicted;  // Before it began.
};

// Nobody waits for it, or not in time: never compute it.
[[nodiscard]] bool IsDead(const WorkItem& item, MonotonicTime now);

// Each answers the item, once and for all; none throws.
void Answer(WorkItem& item, Result<WorkResult> result);
void AnswerOutOfMemory(WorkItem& item);
// Says why it was not computed: it is too late, or its client has gone.
void AnswerDead(WorkItem& item, MonotonicTime now);

// Where a batch is run.
struct RunPlace {
  std::uint16_t worker = 0;  // The number of the thread, for the recorder and the toll; or kFrontEnd.
  RunWidth width = RunWidth::kAll;
  bool exclusive = false;                           // No other worker runs anything meanwhile.
  MonotonicTime free_since = MonotonicTime::min();  // Before that it waited for other runs.
};

// Runs requests together and answers each. Learns what runs take. Thread-safe: it has no state of its own.
class BatchRunner {
 public:
  // Told of every run that ended well, by the thread that ran it; may be empty.
  using OnRun = std::function<void(const Servable&, const RunRecord&)>;

  // Borrows the clock, and the recorder and the toll, which may be null.
  BatchRunner(const Clock& clock, OnRun on_run, FlightRecorder* recorder, TrainingToll* toll)
      : clock_(clock), on_run_(std::move(on_run)), recorder_(recorder), toll_(toll) {}

  // The items are of one servable and can share a run; `queued` is when each began to wait. One that fails a run that
  // others share fails alone.
  void RunAndAnswer(std::span<WorkItem> items, std::span<const MonotonicTime> queued, RunPlace place) const;

 private:
  // What came of one run of a session.
  struct Run {
    MonotonicTime start;
    Status ran;                                        // Whether the session itself failed.
    std::vector<Result<std::vector<Tensor>>> outputs;  // Of each item; empty when it did.
    InferTiming timing;                                // Without the items' own waiting.
    std::optional<RunPrediction> predicted;
    AloneTime alone;
    std::chrono::nanoseconds took{0};  // All of it: joining and splitting, too.
  };

  void RunTogether(std::span<WorkItem> items, std::span<const MonotonicTime> queued, RunPlace place) const;
  void RunApart(WorkItem& item, MonotonicTime queued, RunPlace place) const;
  [[nodiscard]] Run Execute(std::span<const WorkItem> items, std::span<const MonotonicTime> queued,
                            RunPlace place) const;
  // Tells the toll of a run, and learns from it what runs take without training.
  void TollBegin(const Servable& servable, std::int64_t elements, std::span<const MonotonicTime> queued, Run& run,
                 RunPlace place) const;
  void TollEnd(const Servable& servable, std::int64_t elements, const Run& run, MonotonicTime end,
               RunPlace place) const;
  // Tells the recorder who runs from now on; the number of the batch.
  [[nodiscard]] std::uint64_t RecordBegin(std::span<const WorkItem> items, const Run& run, RunPlace place) const;

  // Constant after construction.
  const Clock& clock_;
  const OnRun on_run_;
  FlightRecorder* const recorder_;
  TrainingToll* const toll_;
};

// Of inputs, as short runs are told by.
[[nodiscard]] std::size_t InputBytes(std::span<const Tensor> inputs);

}  // namespace tandem
