#include "bench/report.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <json/json.h>

namespace tandem::bench {
namespace {

Report Sample() {
  Report report;
  report.scenario = "serving";
  report.date = "2026-01-02T03:04:05Z";
  report.commit = "unknown";
  report.machine = {.cpu = "A \"fast\" one",
                    .cores = 2,
                    .memory_gb = 23.4,
                    .kernel = "6.1",
                    .os = "Debian",
                    .onnx_runtime = "1.21.0"};
  report.rows.push_back(MakeRow("p50 over bare", "tiny, REST", "µs", {90, 70, 80}, {.must = 150, .aim = 60}));
  report.rows.push_back(MakeRow("throughput", "tiny", "requests/s", {19'000, 18'000},
                                {.must = 20'000, .aim = {}, .better = Better::kHigher}));
  report.rows.push_back(MakeRow("p50", "bare", "µs", {5}));
  return report;
}

Json::Value Parse(const std::string& text) {
  Json::Value value;
  std::string problem;
  const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
  EXPECT_TRUE(reader->parse(text.data(), text.data() + text.size(), &value, &problem)) << problem;
  return value;
}

TEST(Report, JsonHasExactlyTheMembersOfTheStableForm) {
  const Json::Value json = Parse(ReportJson(Sample()));
  const auto names = json.getMemberNames();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
            (std::set<std::string>{"scenario", "date", "commit", "machine", "rows"}));
  for (const Json::Value& row : json["rows"]) {
    const auto members = row.getMemberNames();
    EXPECT_EQ(std::set<std::string>(members.begin(), members.end()),
              (std::set<std::string>{"metric", "cell", "value", "unit", "low", "high", "repetitions", "must", "aim",
                                     "better", "met"}));
  }
  EXPECT_EQ(json["rows"][0]["value"].asDouble(), 80);
  EXPECT_EQ(json["rows"][0]["low"].asDouble(), 70);
  EXPECT_EQ(json["rows"][0]["high"].asDouble(), 90);
  EXPECT_EQ(json["rows"][0]["repetitions"].asInt(), 3);
  EXPECT_EQ(json["rows"][0]["better"].asString(), "lower");
  EXPECT_TRUE(json["rows"][0]["met"].asBool());
  EXPECT_EQ(json["rows"][1]["better"].asString(), "higher");
  EXPECT_FALSE(json["rows"][1]["met"].asBool());
  EXPECT_TRUE(json["rows"][2]["must"].isNull());
  EXPECT_TRUE(json["rows"][2]["met"].asBool());
  EXPECT_EQ(json["machine"]["cpu"].asString(), "A \"fast\" one");
}

TEST(Report, ReadsBackWhatItWrote) {
  const Report before = Sample();
  const auto after = ParseReport(ReportJson(before));
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(after->rows.size(), before.rows.size());
  for (std::size_t i = 0; i < before.rows.size(); ++i) {
    EXPECT_EQ(after->rows[i].metric, before.rows[i].metric);
    EXPECT_EQ(after->rows[i].value, before.rows[i].value);
    EXPECT_EQ(after->rows[i].must, before.rows[i].must);
    EXPECT_EQ(Met(after->rows[i]), Met(before.rows[i]));
  }
}

TEST(Report, ChecksTheFiguresAndNotTheClaimThatTheyAreMet) {
  std::string text = ReportJson(Sample());
  const std::size_t at = text.find("\"met\": false");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 12, "\"met\": true");
  const auto report = ParseReport(text);
  ASSERT_TRUE(report);
  EXPECT_FALSE(Met(report->rows[1]));
  EXPECT_EQ(MissedText(report->rows[1]),
            "missed: throughput (tiny): 18500 requests/s, must be at least 20000 requests/s");
}

TEST(Report, RefusesFilesThatAreNotAReport) {
  for (const std::string text : {"", "[]", "{}", "nonsense", "{\"scenario\":\"s\",\"date\":\"d\",\"commit\":\"c\"}",
                                 "{\"scenario\":\"s\",\"date\":\"d\",\"commit\":\"c\",\"rows\":[{\"metric\":1}]}"}) {
    EXPECT_FALSE(ParseReport(text)) << text;
  }
}

TEST(Report, MarkdownMarksWhatIsMissed) {
  const std::string text = ReportMarkdown(Sample());
  EXPECT_NE(text.find("| p50 over bare | tiny, REST | 80 µs | 70 – 90 | ≤ 150 | ≤ 60 | yes |"), std::string::npos)
      << text;
  EXPECT_NE(text.find("| 18500 requests/s | 18000 – 19000 | ≥ 20000 |  | **no** |"), std::string::npos) << text;
}

TEST(Report, ARowThatDidNotRunIsNeverMetAndSaysWhy) {
  Report report = Sample();
  report.rows.push_back(MakeRowNotRun("throughput ÷ peer", "tiny", "×", "no peer", {.must = 3, .aim = {}}));
  report.rows.push_back(MakeRowNotRun("throughput", "peer", "requests/s", "no peer"));
  const Json::Value row = Parse(ReportJson(report))["rows"][3];
  EXPECT_TRUE(row["value"].isNull());
  EXPECT_TRUE(row["low"].isNull());
  EXPECT_TRUE(row["high"].isNull());
  EXPECT_EQ(row["repetitions"].asInt(), 0);
  EXPECT_FALSE(row["met"].asBool());
  EXPECT_EQ(row["why"].asString(), "no peer");

  const auto after = ParseReport(ReportJson(report));
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->rows[3].not_run, "no peer");
  EXPECT_FALSE(Met(after->rows[3]));
  EXPECT_TRUE(Missed(after->rows[3]));
  EXPECT_FALSE(Met(after->rows[4]));
  EXPECT_FALSE(Missed(after->rows[4]));  // It promises nothing.
  EXPECT_EQ(MissedText(after->rows[3]), "not run: throughput ÷ peer (tiny): no peer");

  const std::string text = ReportMarkdown(report);
  EXPECT_NE(text.find("| throughput ÷ peer | tiny | not run |  | ≤ 3 |  | **no** |"), std::string::npos) << text;
  EXPECT_NE(text.find("| throughput | peer | not run |  |  |  |  |"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\nnot run (2 rows): no peer\n")) << text;
}

TEST(Report, AValueThatIsMissingNeedsAReason) {
  Report report = Sample();
  report.rows.resize(1);
  std::string text = ReportJson(report);
  const std::size_t at = text.find("\"value\": 80");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "\"value\": null");
  const auto parsed = ParseReport(text);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "'why' is missing or not text");
}

TEST(Report, TheMedianOfAnEvenNumberLiesInTheMiddle) {
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(Report, DatesAreUtcInIsoForm) {
  EXPECT_EQ(IsoDate(WallTime(std::chrono::seconds(1'700'000'000))), "2023-11-14T22:13:20Z");
}

}  // namespace
}  // namespace tandem::bench
