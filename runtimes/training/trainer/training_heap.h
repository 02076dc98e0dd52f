#pragma once

namespace tandem::training {

// Keeps what tensors give back, for the next ones. A step allocates what the last one did, and the system takes longer
// to hand out zeroed pages than many an operator to fill them: without this every tensor above 128 KB or so costs a page
// fault for each 4 KB, in every step. Once, before the first tensor; holds for the whole process.
void KeepFreedMemory();

}  // namespace tandem::training
