#include "loadgen/minute_counts.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include "loadgen/trace_file.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr std::string_view kAzure =
    "HashOwner,HashApp,HashFunction,Trigger,1,2,3\n"
    "o1,a1,f1,http,1,0,2\n"
    "o1,a1,f2,timer,10,20,30\n"
    "o2,a2,f1,queue,0,100,0\n";

// Requests in each stretch of the given length.
MinuteCounts CountsOf(const Trace& trace, double minute_ns, std::size_t minutes) {
  MinuteCounts counts(minutes, 0);
  for (const TraceRow& row : trace.streams.at(0)->rows) {
    const auto minute = static_cast<std::size_t>(static_cast<double>(row.time.count()) / minute_ns);
    ++counts.at(std::min(minute, minutes - 1));
  }
  return counts;
}

TEST(ParseAzureCounts, AddsUpAllFunctionsOrTheRowsOfOne) {
  EXPECT_EQ(ParseAzureCounts(kAzure, "d01.csv"), (MinuteCounts{11, 120, 32}));
  EXPECT_EQ(ParseAzureCounts(kAzure, "d01.csv", "f2"), (MinuteCounts{10, 20, 30}));
  EXPECT_EQ(ParseAzureCounts(kAzure, "d01.csv", "f1"), (MinuteCounts{1, 100, 2}));
}

TEST(ParseAzureCounts, ReadsAWholeDay) {
  std::string header = "HashOwner,HashApp,HashFunction,Trigger";
  std::string row = "o,a,f,http";
  for (int minute = 1; minute <= 1440; ++minute) {
    header += "," + std::to_string(minute);
    row += "," + std::to_string(minute % 7);
  }
  const auto counts = ParseAzureCounts(header + "\r\n" + row + "\r\n" + row, "d01.csv");
  ASSERT_TRUE(counts) << counts.error().message;
  ASSERT_EQ(counts->size(), 1440U);
  EXPECT_EQ(counts->at(12), 12U);
  EXPECT_FALSE(ParseAzureCounts(header + ",1441\n" + row + ",1\n", "d01.csv"));
}

TEST(ParseAzureCounts, RefusesWithTheFileTheLineAndTheField) {
  const std::string head = "HashOwner,HashApp,HashFunction,Trigger,1,2\n";
  const std::vector<std::pair<std::string, std::string>> refused{
      {"", "'d' is empty"},
      {head, "'d' has no rows"},
      {"HashOwner,HashApp,HashFunction,Trigger\n", "'d' line 1: the header must be HashOwner"},
      {"HashOwner,HashApp,Function,Trigger,1\n",
       "'d' line 1: field 3 of the header must be 'HashFunction', got 'Function'"},
      {"HashOwner,HashApp,HashFunction,Trigger,0,1\n", "'d' line 1: field 5 of the header must be '1', got '0'"},
      {head + "o,a,f,t,1\n", "'d' line 2: a row must have 6 fields as the header has, got 5"},
      {head + "o,a,f,t,1,2,3\n", "'d' line 2: a row must have 6 fields as the header has, got 7"},
      {head + "o,a,f,t,1,2\no,a,f,t,1,x\n",
       "'d' line 3: minute 2 must be a whole number from 0 to 1000000000, got 'x'"},
      {head + "o,a,f,t,-1,2\n", "'d' line 2: minute 1 must be a whole number from 0 to 1000000000, got '-1'"},
      {head + "o,a,f,t,1.5,2\n", "got '1.5'"},
      {head + "o,a,f,t,,2\n", "got ''"},
      {head + "o,a,f,t,1000000001,2\n", "got '1000000001'"},
  };
  for (const auto& [text, expected] : refused) {
    const auto counts = ParseAzureCounts(text, "d");
    ASSERT_FALSE(counts) << expected;
    EXPECT_NE(counts.error().message.find(expected), std::string::npos) << expected << "\n" << counts.error().message;
  }
  const auto unknown = ParseAzureCounts(kAzure, "d", "f9");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "'d' has no row with HashFunction 'f9'");
}

TEST(ParseMinuteCounts, StartsAtTheFirstMinuteAndFillsGaps) {
  EXPECT_EQ(ParseMinuteCounts("minute,count\n0,5\n1,0\n2,7\n", "m"), (MinuteCounts{5, 0, 7}));
  EXPECT_EQ(ParseMinuteCounts("minute,count\r\n28000000,5\r\n28000003,7", "m"), (MinuteCounts{5, 0, 0, 7}));
}

TEST(ParseMinuteCounts, RefusesWithTheFileTheLineAndTheField) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"", "'m' is empty"},
      {"minute,count\n", "'m' has no rows"},
      {"count,minute\n", "'m' line 1: the header must be 'minute,count', got 'count,minute'"},
      {"minute,count\n1\n", "'m' line 2: a row must have 2 fields (minute,count), got 1"},
      {"minute,count\n1,2,3\n", "'m' line 2: a row must have 2 fields (minute,count), got 3"},
      {"minute,count\nx,2\n", "'m' line 2: minute must be a whole number from 0 to 1000000000, got 'x'"},
      {"minute,count\n1,-2\n", "'m' line 2: count must be a whole number from 0 to 1000000000, got '-2'"},
      {"minute,count\n1,2\n1,2\n", "'m' line 3: minute must rise, got '1' after 1"},
      {"minute,count\n5,2\n4,2\n", "'m' line 3: minute must rise, got '4' after 5"},
      {"minute,count\n5,2\n100005,2\n", "'m' line 3: minute must be less than 100000 after the first, 5, got '100005'"},
  };
  for (const auto& [text, expected] : refused) {
    const auto counts = ParseMinuteCounts(text, "m");
    ASSERT_FALSE(counts) << expected;
    EXPECT_NE(counts.error().message.find(expected), std::string::npos) << expected << "\n" << counts.error().message;
  }
}

TEST(ReadCounts, TakesFiles) {
  const std::string file = testing::TempDir() + "tandem-counts-" + std::to_string(getpid());
  std::ofstream(file) << kAzure;
  EXPECT_EQ(ReadAzureCounts(file), (MinuteCounts{11, 120, 32}));
  EXPECT_FALSE(ReadMinuteCounts(file));
  std::ofstream(file) << "minute,count\n3,4\n";
  EXPECT_EQ(ReadMinuteCounts(file), (MinuteCounts{4}));
  std::filesystem::remove(file);
  EXPECT_FALSE(ReadMinuteCounts(file));
}

RC_GTEST_PROP(SpreadCounts, KeepsEveryMinutesCountAndTheOrderOfTime, ()) {
  MinuteCounts counts(static_cast<std::size_t>(*rc::gen::inRange(1, 60)));
  for (std::uint64_t& count : counts) count = *rc::gen::inRange<std::uint64_t>(0, 50);
  counts.push_back(1);
  // Speeds that leave a minute a whole number of nanoseconds.
  const double speed = *rc::gen::element(0.5, 1.0, 2.0, 60.0, 1000.0);
  const SpreadOptions options{.spread = *rc::gen::element(Spread::kRandom, Spread::kEven),
                              .seed = *rc::gen::arbitrary<std::uint64_t>(),
                              .speed = speed};
  const auto trace = SpreadCounts(counts, options);
  RC_ASSERT(trace.has_value());
  RC_ASSERT(CountsOf(*trace, 60e9 / speed, counts.size()) == counts);
  const auto& rows = trace->streams.at(0)->rows;
  RC_ASSERT(std::ranges::is_sorted(rows, {}, &TraceRow::time));
  RC_ASSERT(rows.back().time <
            nanoseconds(static_cast<std::int64_t>(60e9 / speed) * static_cast<std::int64_t>(counts.size())));
}

RC_GTEST_PROP(SpreadCounts, ScalesTheTotalAndNotMinuteByMinute, ()) {
  MinuteCounts counts(static_cast<std::size_t>(*rc::gen::inRange(1, 60)));
  for (std::uint64_t& count : counts) count = *rc::gen::inRange<std::uint64_t>(0, 50);
  counts.push_back(100);
  const double scale = *rc::gen::inRange(1, 300) / 100.0;
  const auto trace = SpreadCounts(counts, {.scale = scale});
  RC_ASSERT(trace.has_value());
  const auto total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  RC_ASSERT(trace->rows() == static_cast<std::uint64_t>(std::llround(static_cast<long double>(total) * scale)));
}

TEST(SpreadCounts, OfOneRequestAMinuteScaledDownKeepsEveryTenth) {
  const auto trace = SpreadCounts(MinuteCounts(1000, 1), {.scale = 0.1});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->rows(), 100U);
}

TEST(SpreadCounts, PutsRequestsAtEqualDistances) {
  const auto trace = SpreadCounts({3, 0, 1}, {.spread = Spread::kEven, .speed = 60, .model = "resnet", .size = 4});
  ASSERT_TRUE(trace);
  EXPECT_EQ(TraceText(*trace),
            "time_s,model,size\n0.166666666,resnet,4\n0.5,resnet,4\n0.833333333,resnet,4\n2.5,resnet,4\n");
}

TEST(SpreadCounts, AtRandomIsUniformAndDependsOnlyOnTheSeed) {
  const auto times = [](std::uint64_t seed) {
    const Trace trace = SpreadCounts({20'000}, {.seed = seed}).value();
    std::vector<double> parts;
    for (const TraceRow& row : trace.streams.at(0)->rows) {
      parts.push_back(static_cast<double>(row.time.count()) / 60e9);
    }
    return parts;
  };
  const auto parts = times(1);
  EXPECT_EQ(parts, times(1));
  EXPECT_NE(parts, times(2));
  // A Kolmogorov–Smirnov test at 1 % significance.
  double distance = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    distance = std::max({distance, std::abs(parts[i] - static_cast<double>(i) / 20'000),
                         std::abs(parts[i] - static_cast<double>(i + 1) / 20'000)});
  }
  EXPECT_LT(distance, 1.63 / std::sqrt(20'000));
}

TEST(SpreadCounts, RefusesWhatMakesNoSense) {
  const auto refusal = [](const MinuteCounts& counts, const SpreadOptions& options) {
    const auto trace = SpreadCounts(counts, options);
    return trace ? "taken" : trace.error().message;
  };
  const auto contains = [](const std::string& text, std::string_view part) {
    return text.contains(part) ? testing::AssertionSuccess() : testing::AssertionFailure() << text;
  };
  for (const double value : {0.0, -1.0, 2e6, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(contains(refusal({1}, {.speed = value}), "speed must be above 0 and at most 1e+06"));
    EXPECT_TRUE(contains(refusal({1}, {.scale = value}), "scale must be above 0 and at most 1e+06"));
  }
  EXPECT_TRUE(contains(refusal({1}, {.size = 0}), "size must be from 1 to 1000000, got 0"));
  EXPECT_TRUE(contains(refusal({1}, {.model = "a,b"}), "model 'a,b' has a comma"));
  EXPECT_TRUE(contains(refusal({1, 1}, {.speed = 1e-6}), "2 minutes at speed 1e-06 take"));
  EXPECT_TRUE(contains(refusal({0, 0}, {}), "hold no request"));
  EXPECT_TRUE(contains(refusal({}, {}), "hold no request"));
  EXPECT_TRUE(contains(refusal({50'000'000, 1}, {}), "at most 50000000 rows"));
  EXPECT_EQ(SpreadCounts({100}, {.scale = 1e6}).error().code, ErrorCode::kTooLarge);
}

}  // namespace
}  // namespace tandem::loadgen
