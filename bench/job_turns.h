#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// What several training jobs on one server come to. Both kinds take "jobs": objects with "network" and "batch" (as
// "training_rate" has them) and "count" of such jobs.

// Kind "job_turns": a server for each of "policies" in turn, to which all jobs are submitted at once, in the order of
// the file; each has its "steps". Series: POLICY.completion (mean seconds from the submission of the first until a job
// has ended), POLICY.makespan (until the last has).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseJobTurns(JsonFields& fields,
                                                                 const std::vector<PeerSpec>& peers);

// Kind "jobs_at_once": jobs without end on one server under "policy", with "memory" as its budget, watched for
// "seconds" once all have made a step and were paused and let on, so that none is ahead. Series: progressed (jobs that
// made steps meanwhile, of all), spread (between who had most and least of the time, of the mean), memory (what the
// server and its trainers hold together, of the budget, the most of several looks), switch_p50 and switch_p99 (seconds
// from a boundary until the next job ran: upper bounds of buckets that are powers of two microseconds).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseJobsAtOnce(JsonFields& fields,
                                                                   const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
