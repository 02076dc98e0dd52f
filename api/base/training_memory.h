#pragma once

#include <cstdint>
#include <optional>
#include <string>

// What a training job takes of memory, in bytes: as told before it begins, and as measured while it runs. Plain values.

namespace tandem {

// What is there as long as the job has a trainer. Gradients are not in it: they go with the step that made them.
struct PersistentBytes {
  std::uint64_t weights = 0;    // With running statistics and constants of the graph.
  std::uint64_t optimizer = 0;  // Its state.
  std::uint64_t data = 0;       // Batches that are read ahead, and what their source holds itself.
  std::uint64_t framework = 0;  // What libraries keep for themselves.

  [[nodiscard]] std::uint64_t total() const { return weights + optimizer + data + framework; }
  friend bool operator==(const PersistentBytes&, const PersistentBytes&) = default;
};

// What computing a part of a step again makes of a job's ephemeral memory (`memory: fit`).
struct FitEstimate {
  std::uint64_t kept = 0;   // If everything was held that gradients need.
  std::uint64_t least = 0;  // The least that it can be brought to.
  double slowdown = 0;      // By so much a step takes longer than if everything was held; as a share.

  friend bool operator==(const FitEstimate&, const FitEstimate&) = default;
};

// What is expected of a job.
struct MemoryEstimate {
  PersistentBytes persistent;
  std::uint64_t ephemeral = 0;     // The most that a step needs beside that: activations, gradients, workspaces.
  std::string peak;                // The operator at which that is.
  std::int64_t batch = 0;          // Examples at a time.
  std::optional<FitEstimate> fit;  // Of a job that is to fit: what `ephemeral` came from.

  friend bool operator==(const MemoryEstimate&, const MemoryEstimate&) = default;
};

// What a trainer has taken, by the end of its second step.
struct MemoryUse {
  std::uint64_t persistent = 0;
  std::uint64_t ephemeral = 0;

  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

// By how much an estimate is wrong, as a share of what was measured: above 0 when it is too much. 0 where nothing was
// measured.
[[nodiscard]] inline double EstimateError(std::uint64_t estimated, std::uint64_t measured) {
  if (measured == 0) return 0;
  return (static_cast<double>(estimated) - static_cast<double>(measured)) / static_cast<double>(measured);
}

}  // namespace tandem
