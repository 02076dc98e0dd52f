#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// Kind "served_memory": many models in one server, each with weights of its own. Fields "networks" (light models of
// Debian's libonnx-testdata, whose weights are written into the files, and those of bench/training) and "copies" of
// each, with different weights. Every model is asked in turn, one request at a time; beside that each is run in a
// private session: ONNX Runtime with nothing around it and memory of its own, in the process of the benchmark. Series:
//   memory         bytes: the server's proportional set size (PSS) when all have been asked, and empty; and of what
//   memory.empty   there would have to be at least:
//   weights        bytes of weights in the models' files
//   run            bytes that the largest run takes, as a lane sees it in the process of the benchmark
//   ratio          memory ÷ (weights + run)
//   overhead       seconds by which the median of a model's requests is longer than that of its private runs, a sample
//                  for each model and round
//   load           seconds from the start of the server until it is ready
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseServedMemory(JsonFields& fields,
                                                                     const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
