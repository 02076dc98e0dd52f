#include "server/metrics/memory_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "memory/memory_book.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(MemoryCollector, ShowsBudgetUseLanesAndWhoWaits) {
  MemoryBook book(BudgetOf({.bytes = 1000}, {.device = 5000}), 2);
  book.Count(MemoryKind::kModel, "m version 1", {.persistent = 100, .ephemeral = 40});
  book.Ask("job 1", {.persistent = 300, .ephemeral = 200}, 0);
  ASSERT_TRUE(book.AdmitNext());
  book.Ask("job 2", {.persistent = 900}, 0);
  const std::string shown = prometheus::TextSerializer().Serialize(MemoryFamilies(book.Map()));
  for (const char* const line : {"tandem_memory_budget_bytes 1000\n", "tandem_memory_persistent_bytes 400\n",
                                 "tandem_memory_ephemeral_bytes 280\n", "tandem_memory_overhang_bytes 0\n",
                                 "tandem_memory_waiting_sessions 1\n", R"(tandem_lane_bytes{lane="1"} 40)",
                                 R"(tandem_lane_bytes{lane="2"} 40)", R"(tandem_lane_bytes{lane="3"} 200)"}) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
}

}  // namespace
}  // namespace tandem
