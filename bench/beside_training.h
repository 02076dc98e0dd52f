#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "beside_training": what requests and training cost one another under several policies (`--colocation`). A server
// for each of "policies" serves "model" and trains "network" (bench/training/networks.h) on random examples, "batch" a
// step, in one job or as many as "jobs" says, whose rates are added up. Fields "load" (the share of the machine, or of
// the quota, that the requests take when nothing is trained: their rate is chosen for it, once); "quota" (cores; 0:
// none) puts each server with its trainers into a control group of its own.
//
// The sides take turns of "windows" windows in as many laps as the pace has rounds, in an order that is drawn anew for
// each lap; requests are a Poisson process, the same one for all sides of a lap. A machine that is slow for some
// seconds so hits no side more often than the others. "pool" laps (1 if it is not said) together make one figure of
// each side: the p99 of all their requests, steps by all their time. Steps are counted by operators, so that one that
// has begun counts for what is done of it. Series:
//   alone.asked            requests a second, of every side
//   alone.p50, alone.p99   seconds of an answer when nothing is trained
//   alone.load             the share that requests took
//   POLICY.p50, POLICY.p99, POLICY.rate                                            of both at once
//   POLICY.alone_rate      steps a second when nobody asks, of the policies in "trained_alone" (all by default); with
//                          a quota, whose use a policy may choose then, only of "idle", which must be one of them
//   POLICY.kept            its rate by what requests leave of that of its trainer alone (or of idle's): × (1 − load)
//   POLICY.throttled       share of the periods whose quota was used up; 0 without a quota
//   POLICY.acknowledged    seconds until a trainer saw that it may go on or not, p99: the upper bound of its bucket in
//                          the server's histogram, of the worst lap; no sample where none was told anything
//   alone.wait, POLICY.wait          seconds that the server's threads waited for a core because of one request to the
//                                    model "tiny", p99 of requests sent singly after a turn (run_queue_probe.h)
//   alone.wait_run, POLICY.wait_run  the same of requests to the model itself, all waits of a run together. None of
//                                    these is made unless it is wanted
//   better                 how many of the others have both a lower p99 and keep more of their training than the first
//                          policy, within one lap, in more than half of the laps
//   better_by_medians      the same by the medians of the figures
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseBesideTraining(JsonFields& fields,
                                                                       const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
