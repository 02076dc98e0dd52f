#pragma once

#include "api/base/op_gate.h"

namespace tandem {

// Lets everything pass, and counts.
struct OpenGate final : OpGate {
  void Pass() override { ++passed; }
  int passed = 0;
};

}  // namespace tandem
