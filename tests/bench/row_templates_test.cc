#include "bench/row_templates.h"

#include <string>

#include <gtest/gtest.h>
#include <json/json.h>

#include "api/wire/json_document.h"

namespace tandem::bench {
namespace {

// The rows of the measurements as "metric: cell of over must", one a line.
std::string Rows(const Json::Value& scenario) {
  std::string text;
  for (const Json::Value& measurement : scenario["measurements"]) {
    for (const Json::Value& row : measurement["rows"]) {
      text += row["metric"].asString() + ": " + row["cell"].asString() + " " + row["of"].asString();
      for (const Json::Value& over : row["over"]) text += " " + over.asString();
      if (row.isMember("must")) text += " " + std::to_string(row["must"].asInt());
      text += "\n";
    }
  }
  return text;
}

std::string Expanded(const std::string& text) {
  Json::Value scenario = *ParseStrictJson(text);
  const Status expanded = ExpandRows(scenario);
  if (!expanded) return expanded.error().message;
  EXPECT_FALSE(scenario.isMember("row_sets"));
  EXPECT_FALSE(scenario["measurements"][0].isMember("cell"));
  return Rows(scenario);
}

TEST(RowTemplates, PlainRowsStayAsTheyAre) {
  EXPECT_EQ(Expanded(R"({"measurements": [{"rows": [{"metric": "m", "cell": "c", "of": "a", "over": ["b"]}]}]})"),
            "m: c a b\n");
  Json::Value odd = *ParseStrictJson(R"({"measurements": [{"rows": 5}, 7]})");
  const Json::Value before = odd;
  EXPECT_TRUE(ExpandRows(odd));
  EXPECT_EQ(odd, before);
}

TEST(RowTemplates, ARowForSeveralIsOneForEach) {
  EXPECT_EQ(Expanded(R"({"measurements": [{"cell": "x", "policies": ["a", "b", "c"], "rows": [
      {"metric": "m", "cell": "{each}", "for": "policies", "except": ["b"], "of": "{each}.p99", "over": ["{each}.x"]},
      {"metric": "n", "for": ["d"], "of": "{each}.{each}"}]}]})"),
            "m: x, a a.p99 a.x\nm: x, c c.p99 c.x\nn: x d.d\n");
}

TEST(RowTemplates, SetsOfRowsStandForTheirRows) {
  EXPECT_EQ(Expanded(R"({"row_sets": {"s": [{"metric": "m", "of": "a"}, {"metric": "n", "of": "a"}]},
      "measurements": [{"cell": "x", "rows": ["s", {"metric": "o", "of": "b"}]}, {"cell": "y", "rows": ["s"]}]})"),
            "m: x a\nn: x a\no: x b\nm: y a\nn: y a\n");
}

TEST(RowTemplates, AQuotaIsInTheCellAndHasItsOwnGoals) {
  const std::string row = R"("rows": [{"metric": "m", "of": "a", "must": 1, "under_quota": {"must": 2}}]})";
  EXPECT_EQ(Expanded(R"({"measurements": [{"cell": "x", "quota": 0, )" + row + "]}"), "m: x a 1\n");
  EXPECT_EQ(Expanded(R"({"measurements": [{"cell": "x", "quota": 1, )" + row + "]}"), "m: x, quota of 1 core a 2\n");
  const std::string only = R"("rows": [{"metric": "m", "of": "a", "quota_only": true}]})";
  EXPECT_EQ(Expanded(R"({"measurements": [{"cell": "x", "quota": 0, )" + only + "]}"), "");
  EXPECT_EQ(Expanded(R"({"measurements": [{"cell": "x", "quota": 2, )" + only + "]}"), "m: x, quota of 2 cores a\n");
}

TEST(RowTemplates, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(Expanded(R"({"measurements": [{"rows": ["s"]}]})"), "/measurements/0/rows/0: there is no set of rows 's'");
  EXPECT_EQ(Expanded(R"({"row_sets": [], "measurements": []})"), "/row_sets: must be an object, not []");
  EXPECT_EQ(Expanded(R"({"row_sets": {"s": 1}, "measurements": [{"rows": ["s"]}]})"),
            "/row_sets/s: must be a list of rows, not 1");
  EXPECT_EQ(Expanded(R"({"measurements": [{"rows": [{"for": "nothing"}]}]})"),
            "/measurements/0/rows/0/for: must be a list of texts, not null");
  EXPECT_EQ(Expanded(R"({"row_sets": {"s": [{"for": ["a"], "except": [1]}]}, "measurements": [{"rows": ["s"]}]})"),
            "/row_sets/s/0/except: must be a list of texts, not [1]");
  EXPECT_EQ(Expanded(R"({"measurements": [{"rows": [{"under_quota": {"maximum": 1}}]}]})"),
            "/measurements/0/rows/0/under_quota/maximum: is not known here");
}

TEST(RowTemplates, AQuotaForAllLeavesNothingTwice) {
  Json::Value scenario = *ParseStrictJson(R"({"row_sets": {"s": [{"metric": "m", "of": "a"}]}, "measurements": [
      {"cell": "x", "quota": 0, "rows": ["s"]},
      {"cell": "x", "quota": 1, "rows": ["s"]},
      {"cell": "x", "quota": 1, "rows": ["s", {"metric": "n", "of": "a"}]},
      {"cell": "y", "rows": ["s"]}]})");
  ASSERT_TRUE(SetQuota(scenario, 1.5));
  ASSERT_TRUE(ExpandRows(scenario));
  DropRepeatedRows(scenario);
  EXPECT_EQ(Rows(scenario), "m: x, quota of 1.5 cores a\nn: x, quota of 1.5 cores a\nm: y a\n");
  EXPECT_EQ(scenario["measurements"].size(), 3U);

  Json::Value without = *ParseStrictJson(R"({"measurements": [{"rows": []}]})");
  EXPECT_FALSE(SetQuota(without, 1));
}

}  // namespace
}  // namespace tandem::bench
