#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/cpu_limits.h"

namespace tandem::simulation {

// An operator on a CPU, or a kernel on a GPU: what is never left half-way but by a hold.
struct Step {
  std::chrono::nanoseconds time{0};  // With the whole device to itself.
  double width = 1;    // Cores that it keeps busy, or SMs that it occupies; 0: it waits for something else.
  bool heavy = false;  // Of training: requests have no room beside it.
};

enum class DeviceKind { kCpu, kGpu };

struct Machine {
  DeviceKind kind = DeviceKind::kCpu;
  int width = 1;    // Cores or SMs.
  int workers = 1;  // Runs under way at once; 0, on a CPU: one for each thread, and runs have one thread or all.
  // CPU only: how many times as fast a run is while training is on the same cores, given all of the CPU time that it
  // wants. Above 1 where idle cores sleep and are slow to wake, below 1 where caches are fought over.
  double speed_beside_training = 1;
  std::optional<CpuLimit> limit;  // CPU only; of requests and training together.
};

struct Model {
  std::string name;
  double rate = 1;  // Requests per second.
  bool poisson = true;
  std::optional<std::chrono::nanoseconds> slo;
  int max_batch = 1;
  double growth = 1;                     // By so much of a run's time every further request makes its batch longer.
  std::vector<Step> steps;               // Of a run of one request; on a CPU there is one, with all cores.
  double speedup = 1;                    // CPU only: so many times as fast as with one thread.
  double spread = 0;                     // Of the logarithm of a run's time; the times of steps are medians.
  std::chrono::nanoseconds front{0};     // CPU only: CPU time of the front end for a request, beside its run.
  std::chrono::nanoseconds overhead{0};  // From a client to the queue and from the run to the client.
};

struct Trainer {
  std::string name;
  std::vector<Step> steps;  // Of one iteration, with all cores.
  double speedup = 1;       // CPU only, as of a model.
  bool lockstep = true;     // CPU only: threads of an operator wait for one another.
};

// All that a simulation depends on but for the policy. Constant while it runs.
struct Scenario {
  Machine machine;
  std::vector<Model> models;
  std::vector<Trainer> trainers;
  std::chrono::nanoseconds warmup{0};    // Before anything counts.
  std::chrono::nanoseconds duration{0};  // That counts.
  // At most so long afterwards, for answers that are still out: nothing comes any more, and training goes on uncounted.
  std::chrono::nanoseconds drain{0};
  std::uint64_t seed = 1;
  std::string admission = "deadline";  // As --admission.
  std::size_t max_queued = 8192;
};

}  // namespace tandem::simulation
