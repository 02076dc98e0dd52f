#include "runtimes/training/supported_ops.h"

#include <gtest/gtest.h>

#include "runtimes/training/ops/op_table.h"

namespace tandem::training {
namespace {

TEST(SupportedOps, AreThoseThatTrainersKnow) {
  for (const std::string& op : AllOps().Names()) EXPECT_TRUE(IsSupportedOp(op)) << op;
  for (const char* op : {"", "Nonsense", "Loop", "If", "Scan", "StringSplit", "QuantizeLinear"}) {
    EXPECT_EQ(IsSupportedOp(op), AllOps().Knows(op)) << op;
  }
}

}  // namespace
}  // namespace tandem::training
