#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/model_signature.h"
#include "colocation/servable.h"
#include "profiler/run_bytes.h"

namespace tandem::repository {

// What a version that was loaded has of the machine's memory, in bytes.
struct VersionMemory {
  std::string model;
  std::int64_t version = 0;
  std::uint64_t weights = 0;              // By its files, in all of its sessions.
  std::optional<std::uint64_t> measured;  // That the heap grew by while it was loaded and warmed up.
  std::uint64_t run = 0;                  // Of one run at its largest batch: a guess.
  std::uint64_t largest_input = 0;        // What goes into such a run.
  std::shared_ptr<RunBytes> runs;         // What runs take, and have taken; shared with the sessions. Null: unknown.

  // What is counted: the larger of the two, but no more than packed copies of its weights explain, as requests that are
  // answered meanwhile are measured, too.
  [[nodiscard]] std::uint64_t Persistent() const;
};

// Told of each version that was loaded; what is returned is kept as long as the version has memory. Any thread.
using MemoryCounter = std::function<std::shared_ptr<void>(const VersionMemory&)>;

// What one run may take for activations, from what goes in and comes out at the largest batch: a few times that, as
// layers are wider than what they are fed. Dimensions that vary count as 1. A rough guess.
[[nodiscard]] std::uint64_t GuessRunBytes(const ModelSignature& served, const BatchSettings& batching);
// What goes into a run at the largest batch; dimensions that vary count as 1.
[[nodiscard]] std::uint64_t LargestInputBytes(const ModelSignature& served, const BatchSettings& batching);

}  // namespace tandem::repository
