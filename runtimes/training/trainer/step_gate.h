#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/record_function.h>

#include "api/base/op_gate.h"
#include "runtimes/training/fit/recomputer.h"

namespace tandem::training {

// The operators of a whole training step, by their places: the nodes of the program, the loss, the gradients of each of
// these, gradients being kept, and the update of the parameters. Tells the server's gate of them all; a program that
// runs with this one as its gate tells of its nodes. A node that is computed again counts as itself. Training thread
// only.
class StepGate final : public OpGate, public ReplayListener {
 public:
  // Announces them to `gate`, which is borrowed. `update` is what the optimizer is called.
  StepGate(std::vector<OpInfo> nodes, const std::string& update, OpGate& gate);

  // A node of the program.
  void Begin(std::size_t node) override;
  void End() override { gate_.End(); }
  void Describe(std::size_t node, const OpWork& work) override;

  void BeginAgain(std::size_t step) override { gate_.Begin(step); }
  void EndAgain() override { gate_.Begin(gradient_); }

  void BeginLoss() { Begin(nodes_); }
  void BeginUpdate() { gate_.Begin(2 * forward() + 1); }
  // The gradient that autograd is about to compute, by the number that it gave to what that is the gradient of.
  void BeginGradient(std::int64_t sequence);

 private:
  // Nodes and the loss.
  [[nodiscard]] std::size_t forward() const { return nodes_ + 1; }

  const std::size_t nodes_;
  OpGate& gate_;
  // Autograd's next number when each began: those of an operator are from here to the next one's.
  std::vector<std::uint64_t> first_sequence_;
  std::size_t gradient_ = 0;  // The last that began.
};

// As long as it lives, the gate hears of the gradients that this thread computes.
class GradientScope {
 public:
  // Borrows the gate. One at a time on a thread.
  explicit GradientScope(StepGate& gate);
  ~GradientScope();
  GradientScope(const GradientScope&) = delete;
  GradientScope& operator=(const GradientScope&) = delete;

 private:
  StepGate& gate_;
  at::CallbackHandle handle_;
};

}  // namespace tandem::training
