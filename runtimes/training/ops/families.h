#pragma once

#include "runtimes/training/ops/op_table.h"

// One function a family, each in the file of its name (arithmetic.cc, …).

namespace tandem::training {

void AddArithmeticOps(OpTable& table);

}  // namespace tandem::training
