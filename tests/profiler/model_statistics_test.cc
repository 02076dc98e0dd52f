#include "profiler/model_statistics.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(ModelStatistics, CountsRequestsElementsAndRunsApart) {
  ModelStatistics statistics;
  const InferTiming timing{.queue = 10ns, .compute_input = 1ns, .compute_infer = 5ns, .compute_output = 2ns};
  statistics.RecordExecution(3, timing, WallTime(1500ms));
  statistics.RecordSuccess(1, timing, 20ns);
  statistics.RecordSuccess(2, timing, 30ns);
  statistics.RecordFailure(FailureReason::kBackend, 7ns);

  const ModelTotals totals = statistics.Totals();
  EXPECT_EQ(totals.last_inference_ms, 1500u);
  EXPECT_EQ(totals.execution_count, 1u);
  EXPECT_EQ(totals.inference_count, 3u);
  EXPECT_EQ(totals.success.count, 2u);
  EXPECT_EQ(totals.success.ns, 50u);
  EXPECT_EQ(totals.fail.ns, 7u);
  EXPECT_EQ(totals.failures, (std::array<std::uint64_t, kFailureReasonCount>{0, 0, 1, 0}));
  EXPECT_EQ(totals.queue.ns, 20u);
  ASSERT_EQ(totals.batches.size(), 1u);
  EXPECT_EQ(totals.batches.at(3).compute_infer.ns, 5u);
}

}  // namespace
}  // namespace tandem
