#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "interruption": a process of the kernel's idle class computes without a break, as in the middle of an operator
// that is known to slow requests. A request comes, over and over again, and the policy `tandem` stops it where it is;
// the request goes, and it is let on. What it does is seen in memory that it shares. In this process, with the
// server's own arbiter and board. Series: stopped (seconds from the request's arrival to the last thing that the
// process did, p99), resumed (from its end to the first, p99).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseInterruption(JsonFields& fields,
                                                                     const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
