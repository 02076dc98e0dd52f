#pragma once

#include <memory>
#include <span>
#include <vector>

#include "colocation/admission.h"
#include "colocation/device_slots.h"
#include "colocation/run_width.h"
#include "colocation/servable.h"
#include "colocation/simulation/event_clock.h"
#include "colocation/simulation/random_source.h"
#include "colocation/simulation/request_line.h"
#include "colocation/simulation/request_tally.h"
#include "colocation/simulation/scenario.h"
#include "colocation/simulation/stream.h"
#include "profiler/latency_model.h"

namespace tandem::simulation {

// The requests of a simulation from arrival to answer: admission, one queue by deadline, batches, workers. It decides
// with the server's own objects (AdmissionPolicy, ChooseBatch, ChooseWidth, LatencyModel). Arrivals and the times of
// runs depend on nothing but the scenario, so that every policy has the same. Used by one thread; no allocation once
// its queues have grown to what they hold, but for refusals.
class Serving {
 public:
  // `threads` is what a run may use. The scenario is borrowed, outlives it, and names an admission that is known.
  Serving(const Scenario& scenario, int threads);

  // When something happens next that is no end of a step: an arrival, or a deadline that passes in the queue.
  [[nodiscard]] Time NextEvent() const;
  // Lets in or refuses what has come, drops what has waited too long, and starts what can be started.
  void Handle(Time now, std::uint64_t& order);
  // What to run, of each worker.
  [[nodiscard]] std::span<Stream> runs() { return runs_; }
  // To be called when steps are done: goes on to the next ones, and answers.
  void StepsDone(Time now, std::uint64_t& order);

  // Requests that were let in and are not answered yet.
  [[nodiscard]] std::int64_t pending() const { return pending_; }

  [[nodiscard]] std::uint64_t answered() const { return answered_; }

  [[nodiscard]] std::vector<ModelResult> Finish(Time end);

 private:
  struct Line {
    const Model* model = nullptr;
    // By the width of a run.
    struct Runs {
      std::vector<Step> steps;
      LatencyModel latency;
    };
    Runs wide;
    Runs narrow;
    BatchSettings batching;
    RandomSource arrivals;
    RandomSource times;
    RequestTally tally;
    RequestLine waiting;
    Time last_arrival;  // None comes later.
    Time next_arrival = 0;

    Line(const Scenario& scenario, std::size_t index, int threads);
    [[nodiscard]] Runs& runs(RunWidth width) { return width == RunWidth::kOne ? narrow : wide; }
    [[nodiscard]] const Runs& runs(RunWidth width) const { return width == RunWidth::kOne ? narrow : wide; }
    // Sets when the next one comes.
    void Draw();
    void ComeAt(Time time) { next_arrival = time <= last_arrival ? time : kNever; }
    [[nodiscard]] double Scale(std::size_t batch) const { return 1 + model->growth * static_cast<double>(batch - 1); }
  };
  struct Worker {
    Line* line = nullptr;  // Nullptr: it is free.
    std::vector<Request> batch;
    RunWidth width = RunWidth::kAll;
    Time began = 0;
  };

  void Arrive(Line& line, Time now);
  [[nodiscard]] Status Admit(const Line& line, const Request& request, Time now);
  // What stands before the request when all runs have that width, and what it shares its run with.
  struct Ahead {
    std::chrono::nanoseconds work{0};
    std::size_t own = 1;
  };
  [[nodiscard]] Ahead Before(const Line& line, const Request& request, RunWidth width) const;
  void Forecast(const Line& line, const Request& request, Time now, AdmissionSnapshot& snapshot);
  void DropLate(Time now);
  // The line whose first request is the most urgent; null when none waits.
  [[nodiscard]] Line* MostUrgent();
  // Drops what would be computed in vain, then how many of the line to run together.
  [[nodiscard]] std::size_t Choose(Line& line, Time now);
  void Drop(Line& line);
  [[nodiscard]] WidthChoice WidthFor(const Line& line, std::size_t count, Time now);
  void Start(std::size_t worker, Line& line, std::size_t count, RunWidth width, Time now, std::uint64_t order);
  void Answer(std::size_t worker, Time now);

  // Constant after construction.
  const Scenario& scenario_;
  const std::unique_ptr<const AdmissionPolicy> admission_;

  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<Worker> workers_;
  std::vector<Stream> runs_;  // Of each worker.
  DeviceSlots slots_;
  std::size_t queued_ = 0;
  std::int64_t pending_ = 0;
  std::uint64_t answered_ = 0;
  Time next_arrival_ = kNever;
  // Reused.
  std::vector<std::chrono::nanoseconds> rests_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::chrono::nanoseconds> left_;
  std::vector<std::chrono::nanoseconds> predicted_;
};

}  // namespace tandem::simulation
