#pragma once

#include "colocation/job_policy.h"
#include "colocation/simulation/job_mix.h"

namespace tandem::simulation {

// Runs a mix of jobs from iteration to iteration until all are done that can be: no clock, no threads; same arguments,
// same result. Lanes, the queue for memory and the turns are the server's own objects (LaneTable, LaneQueue, JobPolicy,
// JobLedger); only the jobs and the device are made up. Iterations side by side go at full speed while they want no
// more than the device, and share it in proportion when they want more: they do not disturb one another otherwise, and
// a switch takes no time.
[[nodiscard]] JobMixResult SimulateJobs(const JobMix& mix, const JobPolicy& policy);

}  // namespace tandem::simulation
