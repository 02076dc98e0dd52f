#include "server/rest/memory_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/memory_book.h"

namespace tandem::rest {
namespace {

using ::testing::HasSubstr;

TEST(MemoryJson, TellsWhoHasWhatAndWhoWaitsForIt) {
  MemoryBook book(BudgetOf({.bytes = 1000}, {.device = 5000, .limit = 4000}), 1);
  book.Count(MemoryKind::kServer, "reserve", {.persistent = 50});
  const SessionId model = book.Count(MemoryKind::kModel, "m version 1", {.persistent = 100, .ephemeral = 40});
  book.Measure(model, 120);
  const SessionId job = book.Ask("job 1", {.persistent = 300, .ephemeral = 200}, 0);
  ASSERT_EQ(book.AdmitNext(), job);
  book.Ask("job 2", {.persistent = 600, .ephemeral = 10}, 0);

  const Json::Value json = MemoryToJson(book.Map());
  EXPECT_EQ(json["budget_bytes"].asUInt64(), 1000U);
  EXPECT_EQ(json["budget_from"].asString(), "what --memory says");
  EXPECT_EQ(json["limit_bytes"].asUInt64(), 4000U);
  EXPECT_EQ(json["persistent_bytes"].asUInt64(), 450U);
  EXPECT_EQ(json["ephemeral_bytes"].asUInt64(), 240U);
  EXPECT_EQ(json["free_bytes"].asUInt64(), 310U);
  EXPECT_EQ(json["headroom_bytes"].asUInt64(), 310U);
  EXPECT_EQ(json["overhang_bytes"].asUInt64(), 0U);
  std::uint64_t sum = 0;
  for (const Json::Value& region : json["regions"]) sum += region["bytes"].asUInt64();
  EXPECT_EQ(sum, 1000U) << "regions are the whole of the budget";

  ASSERT_EQ(json["sessions"].size(), 3U);
  EXPECT_TRUE(json["sessions"][0]["lane"].isNull());
  EXPECT_TRUE(json["sessions"][0]["measured_bytes"].isNull());
  EXPECT_EQ(json["sessions"][1]["kind"].asString(), "model");
  EXPECT_EQ(json["sessions"][1]["measured_bytes"].asUInt64(), 120U);
  EXPECT_TRUE(json["sessions"][1]["stays"].asBool());
  EXPECT_FALSE(json["sessions"][2]["stays"].asBool());
  ASSERT_EQ(json["lanes"].size(), 2U);
  EXPECT_EQ(json["lanes"][0]["id"], json["sessions"][1]["lane"]);
  EXPECT_EQ(json["lanes"][1]["length_bytes"].asUInt64(), 200U);
  ASSERT_EQ(json["waiting"].size(), 1U);
  EXPECT_EQ(json["waiting"][0]["name"].asString(), "job 2");
  EXPECT_THAT(json["waiting"][0]["reason"].asString(), HasSubstr("would fit when job 1 ends"));
  EXPECT_TRUE(json["kept_for"].isNull());
}

TEST(MemoryJson, AnOverhangLeavesNothingFree) {
  MemoryBook book(BudgetOf({.bytes = 100}, {.device = 5000}), 1);
  book.Count(MemoryKind::kModel, "m version 1", {.persistent = 150, .ephemeral = 10});
  const Json::Value json = MemoryToJson(book.Map());
  EXPECT_EQ(json["overhang_bytes"].asUInt64(), 60U);
  EXPECT_EQ(json["free_bytes"].asUInt64(), 0U);
  EXPECT_EQ(json["headroom_bytes"].asUInt64(), 0U);
  EXPECT_TRUE(json["limit_bytes"].isNull());
}

}  // namespace
}  // namespace tandem::rest
