#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "several_models": models with SLOs and rates of their own beside several trainers, on one server under "policy".
// Fields "models" (objects with "model" and "load": the share of the machine that its requests take alone, by which its
// rate is chosen once), "trains" (objects with "network" and "batch", a job each) and "slo_times". In every round the
// models are asked all at once, each by a Poisson process: a quarter of a window of the pace alone without SLOs, where
// a model's p99 times "slo_times" gives its SLO; a quarter alone with them; a whole window with them beside the jobs.
// Series:
//   attainment, attainment_alone               share of all requests answered within their SLO; late, refused and
//                                              failed ones are not
//   missed                                     how many were not, beside the jobs
//   missed_by_training                         how many of these by the fault of training, as the server tells
//   MODEL.attainment, MODEL.attainment_alone   the same of one model
//   MODEL.isolated, MODEL.p99                  seconds: p99 of the mix alone without SLOs, and of what is answered
//                                              beside the jobs
//   MODEL.slo, MODEL.requests                  seconds; requests a second
//   load                                       share of the machine that the mix alone took
//   NETWORK.rate                               steps a second beside the requests
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseSeveralModels(JsonFields& fields,
                                                                      const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
