#pragma once

#include <cstdint>

namespace tandem {

// The memory that this process may have: the machine's, or its cgroup's share of it.
[[nodiscard]] std::uint64_t UsableMemory();

// What the process's own memory is bounded at: nine tenths of UsableMemory(), or RLIMIT_DATA where that is less. Every
// budget is made from this (server/lifecycle/memory_budgets.h).
[[nodiscard]] std::uint64_t ProcessMemoryBound();

// Sets that bound (RLIMIT_DATA), so that what asks for more than there is fails alone. Without it the system grants
// such memory and kills the process when it is touched: a model of a few bytes can have ONNX Runtime compute a constant
// of any size while it is loaded, where no limit of an arena holds. Does nothing under sanitizers, which reserve more
// than any machine has, nor where there is less than a gigabyte: the stacks of threads count in full though they are
// hardly touched.
void BoundProcessMemory();

}  // namespace tandem
