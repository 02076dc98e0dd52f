#include "server/cli/memory_text.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAnswer = R"({
  "budget_bytes": 1048576000, "budget_from": "80 % of the machine's 1.2 GiB", "free_bytes": 524288000,
  "overhang_bytes": 0,
  "regions": [{"name": "server", "bytes": 104857600}, {"name": "models", "bytes": 1}, {"name": "jobs", "bytes": 209715200},
              {"name": "free", "bytes": 524288000}, {"name": "lanes", "bytes": 209715199}],
  "sessions": [
    {"id": 1, "kind": "server", "name": "reserve", "persistent_bytes": 104857600, "ephemeral_bytes": 0,
     "measured_bytes": null, "stays": true, "lane": null},
    {"id": 4, "kind": "job", "name": "job 7", "persistent_bytes": 209715200, "ephemeral_bytes": 209715199,
     "measured_bytes": 12582912, "stays": false, "lane": 3}],
  "waiting": [{"id": 5, "kind": "job", "name": "job 8", "persistent_bytes": 1, "ephemeral_bytes": 1, "overtaken": 0,
               "reason": "waits for memory: would fit when job 7 ends"}]})";

Json::Value Parsed(const std::string& text) {
  return *ParseStrictJson(text);
}

TEST(MemoryText, DrawsTheBudgetAndListsWhoHasIt) {
  const auto text = MemoryText(Parsed(kAnswer), 40);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("budget 1000.0 MiB (80 % of the machine's 1.2 GiB), free 500.0 MiB\n"));
  // What is hardly anything is seen all the same.
  EXPECT_THAT(*text, HasSubstr("[####MJJJJJJJ....................~~~~~~~~]\n"));
  for (const char* const part : {"# server 100.0 MiB", "J jobs 200.0 MiB", "reserve", "job 7", "12.0 MiB",
                                 "\njob 8 waits for memory: would fit when job 7 ends\n"}) {
    EXPECT_THAT(*text, HasSubstr(part));
  }
  EXPECT_THAT(*text, Not(HasSubstr("than the budget has")));
}

TEST(MemoryText, SaysWhenTooMuchIsInUse) {
  Json::Value answer = Parsed(kAnswer);
  answer["overhang_bytes"] = 2048;
  EXPECT_THAT(MemoryText(answer, 40).value(), HasSubstr("2.0 KiB more are in use than the budget has"));
}

TEST(MemoryText, NobodyAndNothingHasNoTable) {
  Json::Value answer = Parsed(kAnswer);
  answer["sessions"] = answer["waiting"] = Json::Value(Json::arrayValue);
  for (Json::Value& region : answer["regions"]) region["bytes"] = 0;
  const auto text = MemoryText(answer, 40);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("[]\n"));
  EXPECT_THAT(*text, Not(HasSubstr("WHO")));
}

TEST(MemoryText, WhatIsNoSuchAnswerIsAnError) {
  EXPECT_FALSE(MemoryText(Parsed("[]"), 40));
  EXPECT_FALSE(MemoryText(Parsed("{}"), 40));
  for (const char* const field : {"budget_bytes", "budget_from", "free_bytes", "regions", "sessions", "waiting"}) {
    Json::Value answer = Parsed(kAnswer);
    answer[field] = true;
    EXPECT_FALSE(MemoryText(answer, 40)) << field;
    answer.removeMember(field);
    EXPECT_FALSE(MemoryText(answer, 40)) << field;
  }
  Json::Value answer = Parsed(kAnswer);
  answer["sessions"][0] = 5;
  EXPECT_FALSE(MemoryText(answer, 40));
}

}  // namespace
}  // namespace tandem::cli
