#pragma once

namespace torch {
class Library;
}

namespace tandem::training {

// What is said of an operator that has none even so.
inline constexpr const char* kNotFromShapes = "cannot be told from shapes";

// Gives every operator of ATen that has a kernel for the CPU and none for tensors without memory one that needs no
// kernel of its own: see meta_kernels.h. `library` registers for these tensors, and lives for ever.
void AddMetaFallbacks(torch::Library& library);

}  // namespace tandem::training
