#include "bench/runner.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/bench/fake_measurement.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

// Samples of a are 1, 2, 3 (and 10, 11, 12 in the second measurement), those of b twice that.
constexpr const char* kScenario = R"({
  "name": "mine", "what": "a thing",
  "full": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 1},
  "quick": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 1},
  "measurements": [
    {"kind": "fake", "first": 1, "rows": [
      {"metric": "time", "cell": "a, {threads} threads", "of": "a", "unit": "ms", "must": 2000},
      {"metric": "time", "cell": "b over a", "of": "b", "minus": "a", "unit": "s"},
      {"metric": "ratio", "cell": "a to the best of both", "of": "a", "over": ["a", "b"], "unit": "×", "better": "higher"},
      {"metric": "ratio", "cell": "b to the best of both", "of": "b", "over": ["a", "b"], "unit": "×"}
    ]},
    {"kind": "fake", "first": 10, "fails": "no peer here", "rows": [
      {"metric": "other", "cell": "a", "of": "a", "unit": "s"},
      {"metric": "other", "cell": "b", "of": "b", "unit": "s", "must": 1},
      {"metric": "other", "cell": "a of b", "of": "a", "over": "b", "unit": "%"}
    ]}
  ]
})";

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() : scenario_(*ParseScenario(kScenario, FakeKinds())) {
    context_.threads = 4;
    FakeMeasurement::runs() = 0;
  }

  Report Run(std::vector<std::string> only = {}) {
    auto report = RunScenario(scenario_, {.only = std::move(only)}, context_);
    EXPECT_TRUE(report);
    return *report;
  }

  const Scenario scenario_;
  BenchContext context_;
};

TEST_F(RunnerTest, MakesTheRowsOfTheFileFromTheSeries) {
  const Report report = Run();
  EXPECT_EQ(report.scenario, "mine");
  ASSERT_EQ(report.rows.size(), 7U);
  EXPECT_EQ(report.rows[0].cell, "a, 4 threads");
  EXPECT_EQ(report.rows[0].value, 2000);
  EXPECT_EQ(report.rows[0].low, 1000);
  EXPECT_EQ(report.rows[0].high, 3000);
  EXPECT_EQ(report.rows[0].repetitions, 3);
  EXPECT_TRUE(Met(report.rows[0]));
  EXPECT_EQ(report.rows[1].value, 2);
}

TEST_F(RunnerTest, OfSeveralToDivideByTheOneThatLooksWorstCounts) {
  const Report report = Run();
  EXPECT_EQ(report.rows[2].value, 0.5);  // Higher is better: by the larger.
  EXPECT_EQ(report.rows[3].value, 2);    // Lower is better: by the smaller.
}

TEST_F(RunnerTest, RowsWhoseSeriesDidNotRunSayWhyAndAreNotMet) {
  const Report report = Run();
  EXPECT_TRUE(report.rows[4].not_run.empty());
  EXPECT_EQ(report.rows[5].not_run, "no peer here");
  EXPECT_FALSE(Met(report.rows[5]));
  EXPECT_TRUE(Missed(report.rows[5]));
  EXPECT_EQ(report.rows[6].not_run, "no peer here");
  EXPECT_FALSE(Met(report.rows[6]));
  EXPECT_FALSE(Missed(report.rows[6]));
}

TEST_F(RunnerTest, OnlyChosenRowsAreMadeAndOnlyTheirSeriesAreWanted) {
  const Report report = Run({"b over", "time: a"});
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[1].cell, "b over a");
  EXPECT_EQ(FakeMeasurement::runs(), 1);
  const Report one = Run({"other: a of"});
  ASSERT_EQ(one.rows.size(), 1U);
  EXPECT_EQ(FakeMeasurement::last_wanted(), (std::set<std::string>{"a", "b"}));
  Run({"time: a"});
  EXPECT_EQ(FakeMeasurement::last_wanted(), std::set<std::string>{"a"});
}

TEST_F(RunnerTest, AChoiceThatIsInNoRowIsAnErrorThatListsThem) {
  const Status checked = CheckSelection(scenario_, {.only = {"time", "nine"}});
  ASSERT_FALSE(checked);
  EXPECT_TRUE(checked.error().message.starts_with("--only 'nine' is in no row of 'mine'; these are:\n  time: a"))
      << checked.error().message;
  EXPECT_FALSE(RunScenario(scenario_, {.only = {"nine"}}, context_));
}

TEST_F(RunnerTest, AMeasurementsOwnPaceIsItsOwnAlone) {
  constexpr const char* kPaces = R"({
    "name": "mine", "what": "a thing",
    "full": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 4},
    "quick": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 2},
    "measurements": [
      {"kind": "fake", "first": 1, "full": {"rounds": 1, "warmup_s": 0, "window_s": 60},
       "rows": [{"metric": "long", "cell": "a", "of": "a", "unit": "s"}]},
      {"kind": "fake", "first": 1, "rows": [{"metric": "short", "cell": "a", "of": "a", "unit": "s"}]}
    ]
  })";
  const auto scenario = ParseScenario(kPaces, FakeKinds());
  ASSERT_TRUE(scenario) << scenario.error().message;
  for (const bool quick : {false, true}) {
    FakeMeasurement::windows().clear();
    ASSERT_TRUE(RunScenario(*scenario, {.quick = quick}, context_));
    EXPECT_EQ(FakeMeasurement::windows(), quick ? (std::vector<std::chrono::nanoseconds>{2s, 2s})
                                                : (std::vector<std::chrono::nanoseconds>{60s, 4s}));
  }
}

TEST_F(RunnerTest, StopsBetweenMeasurementsWhenAskedTo) {
  const std::atomic<bool> stop{true};
  context_.stop = &stop;
  const auto report = RunScenario(scenario_, {}, context_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(FakeMeasurement::runs(), 0);
}

}  // namespace
}  // namespace tandem::bench
