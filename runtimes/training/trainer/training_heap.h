#pragma once

namespace tandem::training {

// Keeps what tensors give back, for the next ones, in memory of their own with huge pages where the system has them. A
// step allocates what the last one did, and the system takes longer to hand out zeroed pages than many an operator to
// fill them. Once, before the first tensor and before there are threads; holds for the whole process.
void KeepFreedMemory();

// Gives back what is free, of tensors and of all else, until somebody needs it again. For when what follows is of
// another kind: after a model has been read, whose file was in memory as often as it took to make tensors of it, and
// before one is written.
void DropFreedMemory();

}  // namespace tandem::training
