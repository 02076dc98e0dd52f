#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "memory/lane_queue.h"
#include "memory/lane_table.h"

namespace tandem::simulation {

// A training job, as far as its turn and its memory go.
struct SimulatedJob {
  std::string name;
  std::chrono::nanoseconds arrival{0};
  SessionNeed need;
  std::uint64_t iterations = 1;
  std::chrono::nanoseconds iteration{1};  // Alone on the device.
  double width = 1;                       // The part of the device that it keeps busy then.
  int priority = 0;
};

// Jobs that share one device. Constant while it is simulated.
struct JobMix {
  std::uint64_t budget = 0;
  std::size_t max_lanes = LaneTable::kAnyLanes;
  int most_overtaken = LaneQueue::kMostOvertaken;
  std::vector<SimulatedJob> jobs;  // As they come.
};

// What became of a job, since the simulation began.
struct JobOutcome {
  std::chrono::nanoseconds arrival{0};
  std::chrono::nanoseconds admitted{0};  // It had a lane.
  std::chrono::nanoseconds started{0};   // Its first iteration began.
  std::chrono::nanoseconds ended{0};
  bool done = false;  // False: it never ended, as the device has not the memory; the times above mean nothing.

  [[nodiscard]] std::chrono::nanoseconds queueing() const { return started - arrival; }
  [[nodiscard]] std::chrono::nanoseconds completion() const { return ended - arrival; }
};

struct JobMixResult {
  std::vector<JobOutcome> jobs;  // As in the mix.
  std::uint64_t most_bytes = 0;  // In use at any time.
  std::size_t most_jobs = 0;     // That had a lane at the same time.
  std::uint64_t iterations = 0;

  // Of those that are done; 0 when none is.
  [[nodiscard]] std::chrono::nanoseconds makespan() const;
  [[nodiscard]] std::chrono::nanoseconds mean_queueing() const;
  [[nodiscard]] std::chrono::nanoseconds mean_completion() const;
  [[nodiscard]] std::chrono::nanoseconds p95_completion() const;
};

}  // namespace tandem::simulation
