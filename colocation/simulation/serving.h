#pragma once

#include <memory>
#include <span>
#include <vector>

#include "colocation/admission.h"
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
// with the server's own objects (AdmissionPolicy, ChooseBatch, LatencyModel). Arrivals and the times of runs depend on
// nothing but the scenario, so that every policy has the same. Used by one thread; no allocation once its queues have
// grown to what they hold, but for refusals.
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
    std::vector<Step> steps;  // With the threads that a run may use.
    BatchSettings batching;
    LatencyModel latency;
    RandomSource arrivals;
    RandomSource times;
    RequestTally tally;
    RequestLine waiting;
    Time last_arrival;  // None comes later.
    Time next_arrival = 0;

    Line(const Scenario& scenario, std::size_t index, int threads);
    // Sets when the next one comes.
    void Draw();
    void ComeAt(Time time) { next_arrival = time <= last_arrival ? time : kNever; }
    [[nodiscard]] double Scale(std::size_t batch) const { return 1 + model->growth * static_cast<double>(batch - 1); }
  };
  struct Worker {
    Line* line = nullptr;  // Nullptr: it is free.
    std::vector<Request> batch;
    Time began = 0;
    Time ends = 0;  // When it is expected to.
  };

  void Arrive(Line& line, Time now);
  [[nodiscard]] Status Admit(const Line& line, const Request& request, Time now);
  void DropLate(Time now);
  // The line whose first request is the most urgent; null when none waits.
  [[nodiscard]] Line* MostUrgent();
  // Drops what would be computed in vain, then how many of the line to run together.
  [[nodiscard]] std::size_t Choose(Line& line, Time now);
  void Drop(Line& line);
  void Start(std::size_t worker, Line& line, std::size_t count, Time now, std::uint64_t order);
  void Answer(std::size_t worker, Time now);

  // Constant after construction.
  const Scenario& scenario_;
  const std::unique_ptr<const AdmissionPolicy> admission_;

  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<Worker> workers_;
  std::vector<Stream> runs_;  // Of each worker.
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
