#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/base/clock.h"
#include "colocation/arbiter.h"
#include "colocation/core_seats.h"
#include "colocation/job_turns.h"
#include "colocation/policy.h"
#include "colocation/serving_sign.h"
#include "profiler/flight_recorder.h"
#include "profiler/run_log.h"
#include "profiler/training_toll.h"
#include "server/lifecycle/serve_options.h"

namespace tandem {

// How training stands behind inference in this server, and where inference sits. Lives as long as the server does.
struct Colocation {
  std::unique_ptr<const ColocationPolicy> policy;
  std::vector<int> training_cores;     // That trainers may run on; empty: all.
  int training_threads = 1;            // Of a trainer at most, unless its job says otherwise.
  int fixed_threads = 1;               // Of one that must always have as many.
  bool paced = false;                  // Under a CPU limit that the policy heeds.
  std::unique_ptr<CoreSeats> seats;    // Of threads of runs.
  std::unique_ptr<RunLog> runs;        // From the dispatcher to those who watch trainers.
  std::unique_ptr<ServingSign> sign;   // From the dispatcher to trainers; null where the policy has no use for it.
  std::unique_ptr<TrainingToll> toll;  // From the arbiter and the dispatcher to those who answer requests.
  std::unique_ptr<Arbiter> arbiter;    // After the toll, which it borrows.
  std::unique_ptr<JobTurns> turns;     // Among training jobs; null where there are none.
};

// As the options want it. When cores are divided, the calling thread, and all that it starts from now on, keeps to
// those for requests. Limits that cannot be heeded are in the log. Borrows the recorder.
[[nodiscard]] Result<Colocation> SetUpColocation(const ServeOptions& options, const Clock& clock,
                                                 FlightRecorder& recorder);

}  // namespace tandem
