#pragma once

namespace tandem::training {

// Teaches ATen to compute on tensors without memory (the device "meta") what it cannot by itself, so that a training
// step can be gone through for the shapes alone. Convolutions and normalisations have kernels of ours, which also hold
// the workspaces of those for the CPU while they run (workspace.h). Of other operators, those that work on numbers one
// by one take their shape from their inputs; the rest is computed by the CPU on zeros, as long as that is little. What
// reads numbers stays an error: there are none. For the whole process, for good; any number of times, from one thread.
void AddMetaKernels();

}  // namespace tandem::training
