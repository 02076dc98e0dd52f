#include "bench/scenario.h"

#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>
#include <json/json.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "bench/temporary_folder.h"
#include "tests/bench/fake_measurement.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* kGood = R"({
  "name": "mine", "what": "a thing",
  "full": {"minutes": 5, "rounds": 9, "warmup_s": 0.3, "window_s": 2},
  "quick": {"minutes": 0.5, "rounds": 3, "warmup_s": 0, "window_s": 0.5},
  "peers": [
    {"name": "other", "packages": "fastapi", "command": ["{python}", "x.py", "--port={port}"],
     "environment": {"THREADS": "{threads}"}, "ready": "/v2/models/{model}/ready", "start_timeout_s": 2.5}
  ],
  "measurements": [
    {"kind": "fake", "first": 1, "peer": "other", "rows": [
      {"metric": "m", "cell": "{threads} threads", "of": "a", "minus": "b", "over": ["a", "b"], "unit": "ms",
       "must": 3, "aim": 4, "better": "higher"}
    ]}
  ]
})";

Json::Value Good() {
  return *ParseStrictJson(kGood);
}

std::string ErrorOf(const Json::Value& json) {
  const auto scenario = ParseScenario(Json::writeString(Json::StreamWriterBuilder(), json), FakeKinds());
  return scenario ? "no error" : scenario.error().message;
}

TEST(Scenario, ReadsEverythingThatAFileSays) {
  const auto scenario = ParseScenario(kGood, FakeKinds());
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(scenario->name, "mine");
  EXPECT_EQ(scenario->what, "a thing");
  EXPECT_EQ(scenario->full.rounds, 9);
  EXPECT_EQ(scenario->full.window, 2s);
  EXPECT_EQ(scenario->quick.minutes, 0.5);
  EXPECT_EQ(scenario->quick.warmup, 0s);
  ASSERT_EQ(scenario->peers.size(), 1U);
  EXPECT_EQ(scenario->peers[0].command.size(), 3U);
  EXPECT_EQ(scenario->peers[0].environment[0].second, "{threads}");
  EXPECT_EQ(scenario->peers[0].start_timeout, 2500ms);
  ASSERT_EQ(scenario->parts.size(), 1U);
  const RowSpec& row = scenario->parts[0].rows.at(0);
  EXPECT_EQ(row.title(), "m: {threads} threads");
  EXPECT_EQ(row.series(), (std::vector<std::string>{"a", "a", "b", "b"}));
  EXPECT_EQ(row.goal.must, 3);
  EXPECT_EQ(row.goal.aim, 4);
  EXPECT_EQ(row.goal.better, Better::kHigher);
}

TEST(Scenario, EveryFieldThatMustBeThereIsMissedWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"", "name"},
      {"", "what"},
      {"", "full"},
      {"", "quick"},
      {"/full", "minutes"},
      {"/full", "rounds"},
      {"/quick", "warmup_s"},
      {"/quick", "window_s"},
      {"/peers/0", "name"},
      {"/peers/0", "command"},
      {"/peers/0", "ready"},
      {"/peers/0", "start_timeout_s"},
      {"/measurements/0", "kind"},
      {"/measurements/0", "first"},
      {"/measurements/0/rows/0", "metric"},
      {"/measurements/0/rows/0", "cell"},
      {"/measurements/0/rows/0", "of"},
      {"/measurements/0/rows/0", "unit"},
  };
  for (const auto& [place, name] : fields) {
    Json::Value json = Good();
    Json::Value* object = &json;
    if (place == "/full" || place == "/quick") object = &json[place.substr(1)];
    if (place == "/peers/0") object = &json["peers"][0];
    if (place.starts_with("/measurements/0")) object = &json["measurements"][0];
    if (place.ends_with("/rows/0")) object = &json["measurements"][0]["rows"][0];
    object->removeMember(name);
    EXPECT_EQ(ErrorOf(json), Format("{}/{}: is missing", place, name));
  }
}

TEST(Scenario, FieldsThatNobodyKnowsAreRefusedEverywhere) {
  const std::map<std::string, Json::Value* (*)(Json::Value&)> places = {
      {"", [](Json::Value& json) { return &json; }},
      {"/full", [](Json::Value& json) { return &json["full"]; }},
      {"/peers/0", [](Json::Value& json) { return &json["peers"][0]; }},
      {"/measurements/0", [](Json::Value& json) { return &json["measurements"][0]; }},
      {"/measurements/0/rows/0", [](Json::Value& json) { return &json["measurements"][0]["rows"][0]; }},
  };
  for (const auto& [place, find] : places) {
    Json::Value json = Good();
    (*find(json))["odd"] = 1;
    EXPECT_EQ(ErrorOf(json), place + "/odd: is not known here");
  }
}

TEST(Scenario, AMeasurementMayHaveAPaceOfItsOwn) {
  Json::Value json = Good();
  json["measurements"][0]["quick"] = *ParseStrictJson(R"({"rounds": 2, "warmup_s": 1, "window_s": 60})");
  const auto scenario = ParseScenario(Json::writeString(Json::StreamWriterBuilder(), json), FakeKinds());
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_FALSE(scenario->parts[0].full);
  ASSERT_TRUE(scenario->parts[0].quick);
  EXPECT_EQ(scenario->parts[0].quick->rounds, 2);
  EXPECT_EQ(scenario->parts[0].quick->window, 60s);
  json["measurements"][0]["quick"]["minutes"] = 1;
  EXPECT_EQ(ErrorOf(json), "/measurements/0/quick/minutes: is not known here");
  json["measurements"][0]["quick"].removeMember("minutes");
  json["measurements"][0]["quick"].removeMember("rounds");
  EXPECT_EQ(ErrorOf(json), "/measurements/0/quick/rounds: is missing");
}

TEST(Scenario, RefusesARowThatNamesNoSeriesOrNoUnit) {
  for (const char* const field : {"of", "minus", "over"}) {
    Json::Value json = Good();
    json["measurements"][0]["rows"][0][field] = "c";
    EXPECT_EQ(ErrorOf(json), "/measurements/0/rows/0: this measurement has no series 'c'; it has a, b");
  }
  Json::Value json = Good();
  json["measurements"][0]["rows"][0]["unit"] = "miles";
  EXPECT_TRUE(ErrorOf(json).starts_with("/measurements/0/rows/0/unit: must be one of s, ms, µs")) << ErrorOf(json);
  json = Good();
  json["measurements"][0]["rows"][0]["better"] = "faster";
  EXPECT_EQ(ErrorOf(json), "/measurements/0/rows/0/better: must be lower or higher, not 'faster'");
  json = Good();
  json["measurements"][0]["rows"][0]["cell"] = "{model}";
  EXPECT_EQ(ErrorOf(json), "/measurements/0/rows/0/cell: '{model}' is no placeholder that is known here");
}

TEST(Scenario, RefusesMeasurementsThatAreNoneOrUnknownOrShowNothing) {
  Json::Value json = Good();
  json["measurements"] = Json::arrayValue;
  EXPECT_EQ(ErrorOf(json), "/measurements: must list at least one measurement");
  json = Good();
  json["measurements"][0]["kind"] = "guess";
  EXPECT_EQ(ErrorOf(json), "/measurements/0/kind: there is no kind 'guess'; there are fake");
  json = Good();
  json["measurements"][0]["rows"] = Json::arrayValue;
  EXPECT_EQ(ErrorOf(json), "/measurements/0/rows: must list at least one row");
  json = Good();
  json["measurements"][1] = json["measurements"][0];
  EXPECT_EQ(ErrorOf(json), "/measurements: two rows are called 'm: {threads} threads'");
}

TEST(Scenario, WhatIsForTheFullPaceAloneIsLeftOutOfTheQuickOne) {
  Json::Value json = Good();
  json["measurements"][1] = json["measurements"][0];
  json["measurements"][1]["full_only"] = true;
  json["measurements"][1]["rows"][0]["metric"] = "other";
  auto scenario = ParseScenario(Json::writeString(Json::StreamWriterBuilder(), json), FakeKinds());
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(scenario->parts.size(), 2U);
  KeepQuick(*scenario);
  ASSERT_EQ(scenario->parts.size(), 1U);
  EXPECT_EQ(scenario->parts[0].rows[0].metric, "m");
}

TEST(Scenario, AQuotaIsForMeasurementsThatHaveOne) {
  const auto none = ParseScenario(kGood, FakeKinds(), 1.0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "/measurements: none has a quota");
}

TEST(Scenario, RefusesPeersThatCouldNotBeStarted) {
  const auto with = [](const char* field, const Json::Value& value) {
    Json::Value json = Good();
    json["peers"][0][field] = value;
    return ErrorOf(json);
  };
  EXPECT_EQ(with("name", "My Peer"), "/peers/0/name: must be of a-z, 0-9 and _, at most 64 of them, not 'My Peer'");
  EXPECT_EQ(with("packages", "../x"), "/peers/0/packages: must be of a-z, 0-9 and _, at most 64 of them, not '../x'");
  EXPECT_EQ(with("ready", "v2"), "/peers/0/ready: must be a path such as /v2/health/ready, not 'v2'");
  EXPECT_EQ(with("start_timeout_s", 0), "/peers/0/start_timeout_s: must be from 0.1 to 600, not 0");
  EXPECT_EQ(with("command", "serve"), "/peers/0/command: nothing tells the peer where to listen; {port} is missing");
  EXPECT_EQ(with("command", "{prot}"), "/peers/0/command/0: '{prot}' is no placeholder that is known here");
  Json::Value environment;
  environment["A"] = "{b}";
  EXPECT_EQ(with("environment", environment), "/peers/0/environment/A: '{b}' is no placeholder that is known here");

  Json::Value json = Good();
  json["peers"][0].removeMember("packages");
  EXPECT_EQ(ErrorOf(json), "/peers/0/packages: is missing; {python} is that of a list of packages");
  json = Good();
  json["peers"][1] = json["peers"][0];
  EXPECT_EQ(ErrorOf(json), "/peers/1/name: there are two peers 'other'");
  json = Good();
  json["measurements"][0]["peer"] = "another";
  EXPECT_EQ(ErrorOf(json), "/measurements/0/peer: there is no peer 'another'; there is other");
}

TEST(Scenario, FilesThatCannotBeReadAreNamed) {
  const auto folder = TemporaryFolder::Make();
  ASSERT_TRUE(folder);
  const auto absent = ReadScenario((*folder)->path() / "absent.json", FakeKinds());
  ASSERT_FALSE(absent);
  EXPECT_TRUE(absent.error().message.contains("absent.json' cannot be read")) << absent.error().message;

  std::ofstream((*folder)->path() / "large.json") << std::string(kMaxScenarioBytes + 1, ' ');
  EXPECT_FALSE(ReadScenario((*folder)->path() / "large.json", FakeKinds()));

  std::ofstream((*folder)->path() / "wrong.json") << "{}";
  const auto wrong = ReadScenario((*folder)->path() / "wrong.json", FakeKinds());
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.ends_with("wrong.json': /name: is missing")) << wrong.error().message;
}

TEST(FillPlaceholders, ReplacesNamesAndLeavesOtherBracesAlone) {
  EXPECT_EQ(*FillPlaceholders("{a}-{b}{a}", {{"a", "1"}, {"b", ""}}), "1-1");
  EXPECT_EQ(*FillPlaceholders(R"({"json": [1]} {} { {A})", {}), R"({"json": [1]} {} { {A})");
  EXPECT_FALSE(FillPlaceholders("{c}", {{"a", "1"}}));
}

}  // namespace
}  // namespace tandem::bench
