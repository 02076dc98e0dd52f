#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "overload": what a server achieves when it is asked for more than it can do. Two servers, `--admission deadline`
// and `--admission queue`, take turns. Fields "model", "slo_runs" (the SLO, as a multiple of an answer's time when
// nobody else asks) and "times" (the overload, as a multiple of the capacity). In every round, for each server: the SLO
// and the capacity are measured in closed loops, then Poisson arrivals are offered. Series of each, "deadline.…" and
// "queue.…":
//   capacity    answers per second in a closed loop of some users
//   full        answers within the SLO per second, at the rate of the capacity
//   over        the same at the overload
//   recovered   share within the SLO of the requests that are due in the second after it, at half of the capacity
//   recovery    seconds from its end until the last request was due that was late, refused or failed, of two seconds at
//               half of the capacity; 0 when none was
//   recovery_99 the same until all but a hundredth of those that follow are answered in time
//   undisturbed as recovery, of two such seconds with no overload before them: what chance alone comes to
//   recovery_usual  seconds from the end of the overload until as large a share of what follows is in time
//               as of two such seconds with no overload before
//   refusal     seconds until a refused request hears so, the median at the overload; 0 when none was
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseOverload(JsonFields& fields,
                                                                 const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
