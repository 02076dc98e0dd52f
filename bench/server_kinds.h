#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "start": a server is started and ended again in every round. Field "model" (none: an empty repository). Series:
//   ready  seconds from just before the process is made to the first 200 of /v2/health/ready
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseStart(JsonFields& fields, const std::vector<PeerSpec>& peers);

// Kind "idle": a server that nobody asks for anything. Fields "model" and "connections". One sample of each series:
//   resident, private      bytes of its memory before the connections; private ones are not of files
//   connections            that each made one request and are still open while a fresh one is answered
//   connection_memory      bytes that its resident memory has grown by for each of them
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseIdle(JsonFields& fields, const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
