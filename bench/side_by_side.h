#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "side_by_side": one model on several sides in turn: bare, our server, peers. Fields: "model", "users" (of the
// closed loop against servers), "sides". Series of every side: p50, p99 and rate.
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseSideBySide(JsonFields& fields,
                                                                   const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
