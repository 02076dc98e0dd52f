#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tandem {

// One operator of a training step.
struct OpInfo {
  std::string kind;  // "Conv", "Conv gradient", "update".
  std::string name;  // Of the node, or of what it is part of; may be empty.
};

// What one run of an operator does, counted from its tensors.
struct OpWork {
  double flops = 0;
  std::uint64_t bytes = 0;  // Read and written.
};

// Asked before every operator of a training step, on the thread that runs them. An operator is told by its place in
// the list that was announced. Whoever only wants to let operators wait needs Begin alone.
class OpGate {
 public:
  virtual ~OpGate() = default;
  // All operators there are; once, before the first begins.
  virtual void Announce(std::span<const OpInfo> /*ops*/) {}
  // Returns when it may begin. The one before it has ended.
  virtual void Begin(std::size_t op) = 0;
  // The last has ended, and none begins at once.
  virtual void End() {}
  // An iteration is to begin, and all before it have ended: what they worked with is gone. Returns when it may; false:
  // none is to begin any more, so that what there is can be saved.
  [[nodiscard]] virtual bool BeginIteration() { return true; }
  // All iterations have ended; for good.
  virtual void EndIterations() {}
  // What an operator does; once, when it has run for the first time.
  virtual void Describe(std::size_t /*op*/, const OpWork& /*work*/) {}
};

}  // namespace tandem
