#pragma once

#include <memory>
#include <vector>

#include "bench/measurement.h"

namespace tandem::bench {

// What training costs. All but "training_start", "training_estimate" and
// "training_depth" take the fields "network"
// (bench/training/networks.h) and "batch".

// Kind "training_rate": tandem and a program of libtorch's own layers train the same network, in turn, with the same
// number of threads, batch and optimizer, in new processes every round. Series for each of tandem, libtorch and
// libtorch_heap (that program with tandem's heap): SIDE.rate (steps a second), SIDE.memory (the most that the process
// has held).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingRate(JsonFields& fields,
                                                                     const std::vector<PeerSpec>& peers);

// Kind "training_checkpoint": "steps" steps of tandem with a checkpoint in them and as many without, in turn, in one
// process. Series: step (seconds), stall (seconds that those steps take longer), stall_share (of the time of one step),
// interval_share (of the default interval between two checkpoints).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingCheckpoint(JsonFields& fields,
                                                                           const std::vector<PeerSpec>& peers);

// Kind "training_gate": "steps" steps with the server's gate before every operator, which also tells what each takes,
// and as many without, in turn, in one process. Autograd's callback, which finds the node of each gradient, is in both.
// Series: cost (of the steps without).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingGate(JsonFields& fields,
                                                                     const std::vector<PeerSpec>& peers);

// Kind "training_estimate": what jobs are said to take of memory, and what two steps of them take. "cells" names them:
// every one of "networks" (the light models of Debian's libonnx-testdata, and transformer) with every one of
// "optimizers" (sgd, adam) and "batch", where the pace has at least "rounds". Series: persistent and ephemeral (the
// size of the error, one sample a job), each with .high (its 95th percentile) and .least (the error of the job whose
// estimate is lowest, below 0 when too little was estimated); seconds (that an estimate took).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingEstimate(JsonFields& fields,
                                                                         const std::vector<PeerSpec>& peers);

// Kind "training_depth": the deepest of residual networks that trains within "memory_mib", by a control group, when
// everything is held that gradients need, and with `memory: fit`. From "first" to "last" layers, "apart" layers from
// one to the next (He's for small pictures: six to a set of blocks and two more), "batch" examples, "steps" steps each,
// of which the first two are not measured. Series: held, fitted, any (layers: of the deepest that trains; fitted within
// 25 % of the time of a step that holds everything, without a bound; any at whatever time), deeper, deepest (fitted and
// any, as shares of held), slowdown (of `fitted`), predicted (what was told of that before), plan (seconds that it took
// to find the plan).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingDepth(JsonFields& fields,
                                                                      const std::vector<PeerSpec>& peers);

// Kind "training_pause": a real trainer is held and let on, "times" times a round, at random moments. Series: pause and
// resume (the longest of the round: until it waits, until its next operator begins), longest_op.
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingPause(JsonFields& fields,
                                                                      const std::vector<PeerSpec>& peers);

// Kind "training_start": a job on "model", with "batch" random examples a step, through the REST API of a server that
// runs. Series: first_step (from the submission until the job shows a step), pause_call and resume_call (the calls).
[[nodiscard]] Result<std::unique_ptr<Measurement>> ParseTrainingStart(JsonFields& fields,
                                                                      const std::vector<PeerSpec>& peers);

}  // namespace tandem::bench
