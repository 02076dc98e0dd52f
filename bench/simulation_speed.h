#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "simulation_speed": how long the simulator takes for about so many "requests" of a described scenario, a "file"
// of `tandem simulate` seen from the scenario's folder and the "case" of it by that name (none: its first), under the
// policy `tandem`, beside its trainers. All of them in one simulation, in this process, on one thread. Series: seconds.
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseSimulationSpeed(JsonFields& fields,
                                                                        const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
