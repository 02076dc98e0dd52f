#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// What it costs to decide about training, and to ask before an operator; in this process, with the server's own parts.

// Kind "decision": "requests" come at once and go at once, over and over again, beside "trainers" real processes with
// operators that wait for requests, under the policy `tandem`. With "limited" there is a limit of one core, too: what
// is used of it is read from this process's own control groups; when its periods begin is made up. Series: decided
// (seconds from the first look to what was decided, p99: the upper bound of its bucket in `tandem_decision_seconds`),
// applied (the same until the last order and signal).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseDecision(JsonFields& fields,
                                                                 const std::vector<PeerSpec>& peers);

// Kind "gate": one thread asks its board before an operator again and again, and may always go on. Series: operator
// (seconds for each, with the times that are noted there), gate (the same on a clock that costs nothing).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseGate(JsonFields& fields, const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
