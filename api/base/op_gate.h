#pragma once

namespace tandem {

// Asked before every operator of a training step, on the thread that will run it. Returns when the operator may begin.
class OpGate {
 public:
  virtual ~OpGate() = default;
  virtual void Pass() = 0;
};

}  // namespace tandem
