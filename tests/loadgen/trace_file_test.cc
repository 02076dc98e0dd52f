#include "loadgen/trace_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Rows = std::deque<TraceRow>;

constexpr std::string_view kHead = "time_s,model,size\n";

std::string WithHead(std::string_view rows) {
  return std::string(kHead).append(rows);
}

std::string TempFile(std::string_view name) {
  return testing::TempDir() + "tandem-trace-" + std::to_string(getpid()) + std::string(name);
}

TEST(ParseTrace, GivesEachModelItsTimesAndSizes) {
  const auto trace = ParseTrace(WithHead("0,a,1\n0.25,b,8\n0.25,a,\n1e-0,b,2\n3600.000000001,a,16\n"), "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->rows(), 5U);
  ASSERT_EQ(trace->streams.size(), 2U);
  EXPECT_EQ(trace->streams[0]->model, "a");
  EXPECT_EQ(trace->streams[0]->rows, (Rows{{0ns, 1}, {250ms, 1}, {3600s + 1ns, 16}}));
  ASSERT_TRUE(trace->Find("b"));
  EXPECT_EQ(trace->Find("b")->rows, (Rows{{250ms, 8}, {1s, 2}}));
  EXPECT_EQ(trace->Find("c"), nullptr);
}

TEST(ParseTrace, TakesAnEmptyModelForTheOnlyOne) {
  const auto trace = ParseTrace(WithHead("0.5,,\n0.5,,3\n"), "t.csv");
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->streams.size(), 1U);
  EXPECT_EQ(trace->streams[0]->model, "");
  EXPECT_EQ(trace->streams[0]->rows, (Rows{{500ms, 1}, {500ms, 3}}));
}

TEST(ParseTrace, TakesLinesOfWindowsAndALastLineWithoutItsEnd) {
  for (const char* text : {"time_s,model,size\r\n1,a,2\r\n2,a,\r\n", "time_s,model,size\r\n1,a,2\r\n2,a,",
                           "time_s,model,size\n1,a,2\n2,a,\r", "time_s,model,size\n1,a,2\n2,a,1"}) {
    const auto trace = ParseTrace(text, "t.csv");
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->streams.at(0)->rows, (Rows{{1s, 2}, {2s, 1}}));
  }
}

TEST(ParseTrace, RefusesWithTheFileTheLineAndTheField) {
  const std::string longest(255, 'm');
  ASSERT_TRUE(ParseTrace(WithHead("0," + longest + ",1\n"), "t.csv"));
  const std::vector<std::pair<std::string, std::string>> refused{
      {"", "line 1: the header must be 'time_s,model,size', got nothing"},
      {"\n", "line 1: the header must be 'time_s,model,size', got ''"},
      {"0,a,1\n", "line 1: the header must be 'time_s,model,size', got '0,a,1'"},
      {"time_s,model\n", "line 1: the header must be"},
      {"time_s, model, size\n", "line 1: the header must be"},
      {WithHead(""), "has no rows"},
      {WithHead("0,a,1\n\n1,a,1\n"), "line 3: a row must have 3 fields (time_s,model,size), got 1"},
      {WithHead("0,a\n"), "line 2: a row must have 3 fields (time_s,model,size), got 2"},
      {WithHead("0,a,1,x\n"), "line 2: a row must have 3 fields (time_s,model,size), got 4"},
      {WithHead("0,a,1\nsoon,a,1\n"), "line 3: time_s must be a number from 0 to 1e+07, got 'soon'"},
      {WithHead("nan,a,1\n"), "line 2: time_s must be a number from 0 to 1e+07, got 'nan'"},
      {WithHead("NaN,a,1\n"), "got 'NaN'"},
      {WithHead("inf,a,1\n"), "got 'inf'"},
      {WithHead("-1,a,1\n"), "line 2: time_s must be a number from 0 to 1e+07, got '-1'"},
      {WithHead("-0,a,1\n"), "got '-0'"},
      {WithHead("+1,a,1\n"), "got '+1'"},
      {WithHead(" 1,a,1\n"), "got ' 1'"},
      {WithHead("1e8,a,1\n"), "got '1e8'"},
      {WithHead(",a,1\n"), "got ''"},
      {WithHead("0,a,1\n5,a,1\n4.5,b,1\n"), "line 4: time_s must not fall, got '4.5' after '5'"},
      {WithHead("0,a,0\n"), "line 2: size must be a whole number from 1 to 1000000, got '0'"},
      {WithHead("0,a,-1\n"), "size must be a whole number from 1 to 1000000, got '-1'"},
      {WithHead("0,a,1.5\n"), "got '1.5'"},
      {WithHead("0,a,1000001\n"), "got '1000001'"},
      {WithHead("0,a,99999999999999999999\n"), "line 2: size must be"},
      {WithHead("0,a,1\n0,\xff,1\n"), "line 3: model '\xef\xbf\xbd' is not valid UTF-8"},
      {WithHead("0,\xc0\xaf,1\n"), "is not valid UTF-8"},
      {WithHead("0,m" + longest + ",1\n"), "line 2: model must be at most 255 bytes long, got 'mmm"},
      {WithHead("0,\"a\",1\n"), "line 2: model '\"a\"' has a comma, a quote or a control character"},
      {WithHead("0,a\tb,1\n"), "has a comma, a quote or a control character"},
      {WithHead("0," + std::string(2000, 'm') + ",1\n"), "line 2: the line is longer than 1024 bytes"},
  };
  for (const auto& [text, expected] : refused) {
    const auto trace = ParseTrace(text, "t.csv");
    ASSERT_FALSE(trace) << expected;
    EXPECT_EQ(trace.error().message.find("'t.csv' "), 0U) << trace.error().message;
    EXPECT_NE(trace.error().message.find(expected), std::string::npos) << expected << "\n" << trace.error().message;
  }
}

TEST(ParseTrace, IsBounded) {
  const std::string text = WithHead("0,a,1\n1,b,1\n2,a,1\n");
  const auto code = [&](const TraceLimits& limits) { return ParseTrace(text, "t", limits).error(); };
  EXPECT_TRUE(ParseTrace(text, "t", {.bytes = text.size(), .rows = 3, .models = 2}));
  EXPECT_EQ(code({.bytes = text.size() - 1}).code, ErrorCode::kTooLarge);
  EXPECT_EQ(code({.rows = 2}), (Error{ErrorCode::kTooLarge, "'t' line 4: a trace must have at most 2 rows"}));
  EXPECT_EQ(code({.models = 1}),
            (Error{ErrorCode::kTooLarge, "'t' line 3: model 'b' is one too many: a trace must have at most 1 models"}));
}

TEST(ParseTrace, HoldsSixteenBytesARow) {
  EXPECT_EQ(sizeof(TraceRow), 16U);
}

RC_GTEST_PROP(TraceText, IsReadAsTheTraceThatWasWritten, ()) {
  const auto models = *rc::gen::inRange(1, 5);
  std::vector<std::shared_ptr<TraceStream>> streams;
  for (int i = 0; i < models; ++i) {
    streams.push_back(std::make_shared<TraceStream>());
    streams.back()->model = i == 0 ? "" : "model " + std::to_string(i);
    // All have a row at the start, which puts them in order.
    streams.back()->rows.push_back({.time = 0ns});
  }
  nanoseconds now{0};
  for (int i = *rc::gen::inRange(0, 100); i > 0; --i) {
    now += nanoseconds(*rc::gen::inRange<std::int64_t>(0, 3'000'000'000));
    const auto size = static_cast<std::uint32_t>(*rc::gen::inRange(1, 1000));
    streams[static_cast<std::size_t>(*rc::gen::inRange(0, models))]->rows.push_back({.time = now, .size = size});
  }
  Trace trace;
  for (auto& stream : streams) trace.streams.push_back(stream);
  const auto read = ParseTrace(TraceText(trace), "t");
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->streams.size() == trace.streams.size());
  for (std::size_t i = 0; i < trace.streams.size(); ++i) {
    RC_ASSERT(read->streams[i]->model == trace.streams[i]->model);
    RC_ASSERT(read->streams[i]->rows == trace.streams[i]->rows);
  }
}

TEST(TraceText, IsInTheOrderOfTime) {
  const std::string text = WithHead("0,b,1\n0.5,a,2\n0.5,b,1\n1.25,a,1\n10,b,1\n");
  const auto trace = ParseTrace(text, "t");
  ASSERT_TRUE(trace);
  EXPECT_EQ(TraceText(*trace), WithHead("0,b,1\n0.5,b,1\n0.5,a,2\n1.25,a,1\n10,b,1\n"));
}

TEST(TraceFile, IsReadBackAsWritten) {
  const std::string file = TempFile(".csv");
  const auto trace = ParseTrace(WithHead("0,a,1\n0.1,b,2\n0.2,a,3\n"), "t");
  ASSERT_TRUE(trace);
  ASSERT_TRUE(WriteTraceFile(file, *trace));
  const auto read = ReadTraceFile(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(TraceText(*read), TraceText(*trace));
  std::filesystem::remove(file);
}

TEST(TraceFile, IsNamedInErrors) {
  const auto missing = ReadTraceFile("/no/such/trace.csv");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("'/no/such/trace.csv' cannot be read: "), std::string::npos);

  const std::string file = TempFile("-bad.csv");
  std::ofstream(file) << kHead << "0,a,1\n1,a,many\n";
  const auto bad = ReadTraceFile(file);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "'" + file + "' line 3: size must be a whole number from 1 to 1000000, got 'many'");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tandem::loadgen
