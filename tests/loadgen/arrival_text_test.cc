#include "loadgen/arrival_text.h"

#include <format>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "loadgen/arrivals.h"

namespace tandem::loadgen {
namespace {

ArrivalSpec Parsed(std::string_view text, const ArrivalDefaults& defaults = {}) {
  const auto spec = ParseArrivals(text, defaults);
  EXPECT_TRUE(spec) << text << ": " << (spec ? "" : spec.error().message);
  return spec.value_or(ArrivalSpec{});
}

TEST(ParseArrivals, TakesTheRateAndTheUsersFromTheirOwnArguments) {
  const ArrivalDefaults defaults{.rate = 12.5, .users = 7};
  EXPECT_EQ(Parsed("poisson", defaults).kind, ArrivalKind::kPoisson);
  EXPECT_EQ(Parsed("poisson", defaults).rate, 12.5);
  EXPECT_EQ(Parsed("constant", defaults).kind, ArrivalKind::kConstant);
  EXPECT_EQ(Parsed("constant", defaults).rate, 12.5);
  EXPECT_EQ(Parsed("closed", defaults).kind, ArrivalKind::kClosed);
  EXPECT_EQ(Parsed("closed", defaults).users, 7);
}

TEST(ParseArrivals, ReadsEveryFieldInAnyOrder) {
  const ArrivalSpec bursty = Parsed("bursty:off_s=4,on=200,off=5,on_s=1e0");
  EXPECT_EQ(bursty.kind, ArrivalKind::kBursty);
  EXPECT_EQ(bursty.bursty.on, 200);
  EXPECT_EQ(bursty.bursty.off, 5);
  EXPECT_EQ(bursty.bursty.on_s, 1);
  EXPECT_EQ(bursty.bursty.off_s, 4);

  const ArrivalSpec diurnal = Parsed("diurnal:mean=50,swing=0.8,period_s=60");
  EXPECT_EQ(diurnal.kind, ArrivalKind::kDiurnal);
  EXPECT_EQ(diurnal.diurnal.mean, 50);
  EXPECT_EQ(diurnal.diurnal.swing, 0.8);
  EXPECT_EQ(diurnal.diurnal.period_s, 60);
}

TEST(ParseArrivals, ARampGoesOverTheRunUnlessItSaysOtherwise) {
  const ArrivalSpec ramp = Parsed("ramp:from=10,to=100");
  EXPECT_EQ(ramp.kind, ArrivalKind::kRamp);
  EXPECT_EQ(ramp.ramp.from, 10);
  EXPECT_EQ(ramp.ramp.to, 100);
  EXPECT_EQ(ramp.ramp.over_s, std::nullopt);
  EXPECT_EQ(Parsed("ramp:from=10,to=0,over_s=30").ramp.over_s, 30);
}

TEST(ParseArrivals, ReadsStepsInTheirOrder) {
  const ArrivalSpec spec = Parsed("steps:10x5,0x0.5,1e3x10");
  EXPECT_EQ(spec.kind, ArrivalKind::kSteps);
  ASSERT_EQ(spec.steps.size(), 3U);
  EXPECT_EQ(spec.steps[0].rate, 10);
  EXPECT_EQ(spec.steps[0].seconds, 5);
  EXPECT_EQ(spec.steps[1].rate, 0);
  EXPECT_EQ(spec.steps[1].seconds, 0.5);
  EXPECT_EQ(spec.steps[2].rate, 1000);
}

TEST(ParseArrivals, NamesTheTraceButDoesNotReadIt) {
  const ArrivalSpec spec = Parsed("trace:/no/such file:1,2=3.csv");
  EXPECT_EQ(spec.kind, ArrivalKind::kTrace);
  EXPECT_EQ(spec.trace_file, "/no/such file:1,2=3.csv");
  EXPECT_EQ(spec.trace, nullptr);
}

TEST(ParseArrivals, WhatItTakesCanBeRun) {
  const ArrivalDefaults defaults{.rate = 1, .users = 1};
  for (const char* text : {"poisson", "constant", "closed", "bursty:on=200,off=5,on_s=1,off_s=4", "ramp:from=1,to=2",
                           "steps:1x1", "diurnal:mean=1,swing=0,period_s=1"}) {
    EXPECT_TRUE(MakeArrivals(Parsed(text, defaults), 1, std::chrono::seconds(1))) << text;
  }
}

TEST(ParseArrivals, RefusesWithTheFieldAndTheValue) {
  std::string many = "steps:1x1";
  for (int i = 0; i < 10'000; ++i) many += ",1x1";
  const std::vector<std::pair<std::string, std::string>> refused{
      {"", "arrivals '' are not known"},
      {"Poisson", "'Poisson' are not known: there are poisson, constant, closed, bursty"},
      {"poisson ", "'poisson '"},
      {"poisson", "poisson arrivals need a rate"},
      {"constant", "constant arrivals need a rate"},
      {"closed", "closed arrivals need a number of users"},
      {"poisson:5", "poisson arrivals have no fields, got '5'"},
      {"closed:", "closed arrivals have no fields, got ''"},
      {"bursty", "bursty arrivals need the field 'on'"},
      {"bursty:on=1,off=1,on_s=1", "bursty arrivals need the field 'off_s'"},
      {"bursty:on=1,rate=5", "bursty arrivals have no field 'rate': there are on, off, on_s, off_s"},
      {"bursty:on=1,on=2", "field 'on' of bursty arrivals is given twice"},
      {"bursty:on=fast", "field 'on' of bursty arrivals must be a number, got 'fast'"},
      {"bursty:on=", "'on' of bursty arrivals must be a number, got ''"},
      {"bursty:on", "'on' of bursty arrivals must be a number, got ''"},
      {"bursty:on=+1", "got '+1'"},
      {"bursty:on= 1", "got ' 1'"},
      {"bursty:on=0x10", "got '0x10'"},
      {"bursty:on=1s", "got '1s'"},
      {"bursty:on=nan", "got 'nan'"},
      {"bursty:on=inf", "got 'inf'"},
      {"bursty:on=1e999", "got '1e999'"},
      {"bursty:on=1\n", "got '1"},
      {"bursty:on=1,,off=1", "no field ''"},
      {"bursty:on=1,", "end with a comma"},
      {"bursty:on=2e7,off=1,on_s=1,off_s=1",
       "field 'on' of bursty arrivals must be above 0 and at most 1e+07, got 2e+07"},
      {"bursty:on=1,off=-1,on_s=1,off_s=1", "field 'off' of bursty arrivals must be between 0 and 1e+07, got -1"},
      {"ramp:from=1", "ramp arrivals need the field 'to'"},
      {"ramp:from=1,to=2,over_s=0", "field 'over_s' of ramp arrivals must be between 0.001 and 1e+07, got 0"},
      {"steps", "step 1 of steps arrivals must be a rate, 'x' and seconds, as in 10x5, got ''"},
      {"steps:10x5,50", "step 2 of steps arrivals must be a rate, 'x' and seconds, as in 10x5, got '50'"},
      {"steps:10x5,", "step 2 of steps arrivals must be"},
      {"steps:10x5x5", "got '10x5x5'"},
      {"steps:x5", "got 'x5'"},
      {"steps:10X5", "got '10X5'"},
      {"steps:10x5,-1x5", "field 'rate of step 2' of steps arrivals must be between 0 and 1e+07, got -1"},
      {"steps:10x5,1x1e9", "field 'seconds of step 2' of steps arrivals must be between 0.001 and 1e+07, got 1e+09"},
      {many, "at most 10000 steps"},
      {"diurnal:mean=1,swing=2,period_s=1", "field 'swing' of diurnal arrivals must be between 0 and 1, got 2"},
      {"trace", "trace arrivals need a file"},
      {"trace:", "trace arrivals need a file"},
  };
  for (const auto& [text, expected] : refused) {
    const auto spec = ParseArrivals(text, {});
    ASSERT_FALSE(spec) << text.substr(0, 50);
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(spec.error().message.find(expected), std::string::npos) << expected << "\n" << spec.error().message;
  }
}

TEST(ParseArrivals, RefusesARateAndUsersOutOfRange) {
  const auto rate = ParseArrivals("poisson", {.rate = 0, .users = {}});
  ASSERT_FALSE(rate);
  EXPECT_NE(rate.error().message.find("rate"), std::string::npos);
  const auto users = ParseArrivals("closed", {.rate = {}, .users = 100'001});
  ASSERT_FALSE(users);
  EXPECT_NE(users.error().message.find("100001"), std::string::npos);
}

}  // namespace
}  // namespace tandem::loadgen
