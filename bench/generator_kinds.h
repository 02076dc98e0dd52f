#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// What the load generator itself can do: it runs on one thread of this process, against the scenario's peer "peer", a
// server that does next to nothing. All take the field "connections" (1,024, as `tandem loadgen` does).

// Kind "generator_rate": in every round the highest rate is searched for that one thread holds. Field "start", a rate.
// A rate is held when every request is answered and the generator finds no fault with itself: the p99 of its lag is at
// most 1 ms, and its thread is busy for at most 95 % of the time. Series: rate; 0 when not even a tenth of "start" is
// held.
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseGeneratorRate(JsonFields& fields,
                                                                      const std::vector<PeerSpec>& peers);

// Kind "generator_lag": how late requests are sent at a rate. Fields "rate", "arrivals" (as `tandem loadgen`). Series:
// lag_p50, lag_p99, lag_max, busy (share of a core that the thread takes).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseGeneratorLag(JsonFields& fields,
                                                                     const std::vector<PeerSpec>& peers);

// Kind "generator_outstanding": requests are due at "rate" until "requests" of them are outstanding: neither answered
// nor failed, their clocks running. As many as there are connections are on the wire, the others wait in the generator.
// The peer must not answer. One sample of each series: outstanding, memory (growth of this process, in bytes).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseGeneratorOutstanding(JsonFields& fields,
                                                                             const std::vector<PeerSpec>& peers);

// Kind "generator_growth": one run at "rate" of "late_s" seconds. One sample of each series: early and late (memory of
// this process after "early_s" and after "late_s", in bytes), growth between the two.
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseGeneratorGrowth(JsonFields& fields,
                                                                        const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
