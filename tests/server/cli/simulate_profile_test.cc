#include "server/cli/simulate_profile.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "server/cli/simulate_scenario.h"
#include "tests/fakes/fake_root.h"

namespace tandem::cli {
namespace {

using namespace std::chrono_literals;
using simulation::Step;
using testing::AllOf;
using testing::HasSubstr;

std::string Op(const std::string& kind, int count, double total_ms, double typical_ms, const std::string& op_class) {
  Json::Value op;
  op["kind"] = kind;
  op["name"] = "";
  op["count"] = count;
  op["total_ms"] = total_ms;
  op["typical_ms"] = typical_ms;
  op["class"] = op_class;
  op["why"] = "";
  return JsonLine(op);
}

std::string Profile(const std::string& ops) {
  return R"({"live": false, "total_ms": 1, "ops": [)" + ops + "]}";
}

struct Outcome {
  std::vector<Step> steps;
  std::string mistakes;
};

Outcome Read(const std::string& profile) {
  std::vector<JsonMistake> mistakes;
  Outcome outcome{.steps = RecordedIteration(ParseStrictJson(profile).value(), 2, mistakes), .mistakes = ""};
  for (const JsonMistake& mistake : mistakes) outcome.mistakes += mistake.message + "\n";
  return outcome;
}

std::chrono::nanoseconds Sum(const std::vector<Step>& steps) {
  std::chrono::nanoseconds sum{0};
  for (const Step& step : steps) sum += step.time;
  return sum;
}

const std::string kLoss = Op("loss", 100, 10, 0.1, "light");

TEST(SimulateProfile, AnOperatorOfEveryIterationTakesItsTypicalTime) {
  const Outcome read = Read(Profile(Op("Conv", 100, 900, 3, "heavy") + "," + kLoss));
  EXPECT_EQ(read.mistakes, "");
  ASSERT_EQ(read.steps.size(), 2);
  EXPECT_EQ(read.steps[0].time, 3ms) << "not 9 ms, which only the first runs make of it";
  EXPECT_EQ(read.steps[0].width, 2);
  EXPECT_TRUE(read.steps[0].heavy);
  EXPECT_EQ(read.steps[1].time, 100us);
  EXPECT_FALSE(read.steps[1].heavy);
}

TEST(SimulateProfile, RunsOnDifferentThingsTakeWhatTheyTookOnAverage) {
  const Outcome read = Read(Profile(Op("update", 400, 800, 0.01, "light") + "," + kLoss));
  ASSERT_EQ(read.steps.size(), 5) << "four in every iteration";
  EXPECT_EQ(Sum(read.steps), 8ms + 100us) << "most of them are small, one is not";
}

TEST(SimulateProfile, WhatIsSeldomOrOftenerThanOnceIsInProportion) {
  const Outcome read =
      Read(Profile(Op("Conv", 120, 0, 5, "heavy") + "," + Op("rare", 25, 0, 8, "light") + "," + kLoss));
  ASSERT_EQ(read.steps.size(), 3) << "evaluations run the model, too";
  EXPECT_EQ(Sum(read.steps), 6ms + 2ms + 100us);
}

TEST(SimulateProfile, HeavyAndLightTakeTurns) {
  const Outcome read = Read(Profile(Op("Conv", 300, 300, 1, "heavy") + "," + Op("Relu", 500, 5, 0.01, "light") + "," +
                                    Op("loss", 100, 1, 0.01, "light")));
  std::string order;
  for (const Step& step : read.steps) order += step.heavy ? 'H' : 'l';
  EXPECT_EQ(std::ranges::count(order, 'H'), 3);
  EXPECT_EQ(order.find("HH"), std::string::npos);
  EXPECT_EQ(order.find("lll"), std::string::npos);
}

TEST(SimulateProfile, WhatIsWrongIsNamedWithItsValue) {
  EXPECT_EQ(Read(Profile(kLoss)).mistakes, "") << "or the others say nothing";
  EXPECT_THAT(Read("{}").mistakes, HasSubstr("/ops is missing"));
  EXPECT_THAT(Read(R"({"ops": 3})").mistakes, HasSubstr("/ops is 3"));
  EXPECT_THAT(Read(R"({"ops": [7]})").mistakes, HasSubstr("/ops/0 is 7"));
  EXPECT_THAT(Read(Profile("{}")).mistakes, AllOf(HasSubstr("/ops/0/count is missing"), HasSubstr("/ops/0/class")));
  EXPECT_THAT(Read(Profile(kLoss + "," + Op("Conv", -3, 1, 1, "heavy"))).mistakes, HasSubstr("/ops/1/count is -3"));
  EXPECT_THAT(Read(Profile(Op("Conv", 3, 1, -1, "weighty"))).mistakes,
              AllOf(HasSubstr("/ops/0/typical_ms is -1"), HasSubstr(R"(/ops/0/class is "weighty")")));
  EXPECT_THAT(Read(Profile(Op("Conv", 3, 1, 1, "heavy"))).mistakes, HasSubstr("no operator of the kind 'loss'"));
  EXPECT_THAT(Read(Profile(Op("loss", 0, 1, 1, "heavy"))).mistakes, HasSubstr("no operator of the kind 'loss'"));
  const Outcome many = Read(Profile(Op("loss", 1, 1, 1, "light") + "," + Op("Conv", 200'000, 1, 1, "heavy")));
  EXPECT_THAT(many.mistakes, HasSubstr("/ops/1/count is 200000"));
  EXPECT_TRUE(many.steps.empty());
}

class SimulateProfileFile : public testing::Test {
 protected:
  [[nodiscard]] std::string Scenario(const std::string& trainer) const {
    return R"({"name": "x", "device": {"kind": "cpu", "cores": 2}, "trainers": [{"name": "t", )" + trainer + "}]}";
  }
  [[nodiscard]] std::string ErrorOf(const std::string& trainer) const {
    const auto parsed = ParseSimulation(Scenario(trainer), {}, root_.path() / "here");
    return parsed ? "none" : parsed.error().message;
  }

  SimulateProfileFile() {
    const std::string profile = Profile(Op("Conv", 100, 900, 3, "heavy") + "," + kLoss);
    root_.Put("outside.json", profile);
    root_.Put("here/job.json", profile);
    root_.Put("here/below/job.json", profile);
    root_.Put("here/broken.json", "{");
    root_.Put("here/wrong.json", R"({"ops": []})");
    root_.Put("here/large.json", std::string(9 << 20, ' '));
    std::filesystem::create_symlink("../outside.json", root_.path() / "here/link.json");
  }
  fakes::FakeRoot root_;
};

TEST_F(SimulateProfileFile, ATrainerHasWhatWasRecordedAndWhatTheScenarioSaysBesides) {
  root_.Put("here/scenario.json", Scenario(R"("profile": "below/job.json", "cores": 1.5, "speedup": 1.2)"));
  const auto file = ReadSimulation(root_.path() / "here/scenario.json");
  ASSERT_TRUE(file) << file.error().message;
  const simulation::Trainer& trainer = file->cases[0].scenario.trainers[0];
  EXPECT_EQ(Sum(trainer.steps), 3100us);
  EXPECT_EQ(trainer.steps[0].width, 1.5);
  EXPECT_EQ(trainer.speedup, 1.2);
  EXPECT_TRUE(trainer.lockstep);
}

TEST_F(SimulateProfileFile, WhatIsWrongIsNamedWithItsValue) {
  EXPECT_EQ(ErrorOf(R"("profile": "job.json")"), "none") << "or the others say nothing";
  EXPECT_EQ(ErrorOf(R"("profile": "below/../job.json")"), "none");
  for (const char* outside : {"../outside.json", "/etc/passwd", "below/../../outside.json", "link.json", ".."}) {
    EXPECT_THAT(ErrorOf(Format(R"("profile": "{}")", outside)),
                HasSubstr(Format(R"(/trainers/0/profile is "{}", but it is not below the folder)", outside)));
  }
  EXPECT_THAT(ErrorOf(R"("profile": "none.json")"), HasSubstr(R"(/trainers/0/profile is "none.json", but it cannot)"));
  EXPECT_THAT(ErrorOf(R"("profile": "below")"), HasSubstr("no file"));
  EXPECT_THAT(ErrorOf(R"("profile": "job.json\u0000")"), HasSubstr("printable"));
  EXPECT_THAT(ErrorOf(R"("profile": "broken.json")"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(R"("profile": "large.json")"), HasSubstr("more than"));
  EXPECT_THAT(ErrorOf(R"("profile": "wrong.json", "speedup": 1.5)"),
              AllOf(HasSubstr(R"(/trainers/0/profile is "wrong.json", in which /ops is [])"),
                    testing::Not(HasSubstr("speedup"))));
  EXPECT_THAT(ErrorOf(R"("profile": 3)"), HasSubstr("/trainers/0/profile is 3"));
  EXPECT_THAT(ErrorOf(R"("profile": "job.json", "cores": 3)"), HasSubstr("/trainers/0/cores is 3"));
  EXPECT_THAT(ErrorOf(R"("profile": "job.json", "ops": [])"), HasSubstr("/trainers/0/ops is [], but"));
  EXPECT_THAT(ErrorOf(R"("ops": [{"time_ms": 1}], "cores": 1)"), HasSubstr("/trainers/0/cores is not known"));
}

}  // namespace
}  // namespace tandem::cli
