#include "server/cli/simulate_scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

std::string Cpu(const std::string& device, const std::string& model, const std::string& trainer,
                const std::string& more = "") {
  return R"({"name": "x", "device": {"kind": "cpu", "cores": 2)" + device + R"(},
    "models": [{"name": "m", "rate": 10, "service_ms": 5)" +
         model + R"(}],
    "trainers": [{"name": "t", "ops": [{"time_ms": 2)" +
         trainer + "}]}]" + more + "}";
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = ParseSimulation(text);
  return parsed ? "none" : parsed.error().message;
}

TEST(SimulateScenario, EveryFieldArrives) {
  const auto file =
      ParseSimulation(R"({"name": "n", "what": "w", "source": "s", "seconds": 20, "warmup_s": 2, "drain_s": 9,
    "seed": 7, "rounds": 4, "admission": "queue", "max_queue": 50,
    "device": {"kind": "cpu", "cores": 4, "workers": 2, "heavy_share": 0.25, "speed_beside_training": 1.2,
               "quota_cores": 1.5, "period_ms": 50},
    "models": [{"name": "m", "rate": 3.5, "arrivals": "constant", "slo_ms": 40, "overhead_ms": 0.5, "max_batch": 8,
                "batch_growth": 0.3, "spread": 0.1, "service_ms": 5, "cores": 2.5, "speedup": 2, "front_ms": 0.25}],
    "trainers": [{"name": "t", "speedup": 1.5,
                  "ops": [{"name": "a", "time_ms": 2, "cores": 2, "repeat": 3},
                          {"time_ms": 1, "cores": 0.5}, {"time_ms": 1, "cores": 4, "heavy": false}]}]})");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->cases.size(), 1);
  EXPECT_EQ(file->cases[0].name, "");
  EXPECT_EQ(file->cases[0].rounds, 4);
  const simulation::Scenario& scenario = file->cases[0].scenario;
  EXPECT_EQ(scenario.duration, 20s);
  EXPECT_EQ(scenario.warmup, 2s);
  EXPECT_EQ(scenario.drain, 9s);
  EXPECT_EQ(scenario.seed, 7);
  EXPECT_EQ(scenario.admission, "queue");
  EXPECT_EQ(scenario.max_queued, 50);
  EXPECT_EQ(scenario.machine.width, 4);
  EXPECT_EQ(scenario.machine.workers, 2);
  EXPECT_EQ(scenario.machine.speed_beside_training, 1.2);
  EXPECT_EQ(scenario.machine.limit, (CpuLimit{.quota = 75ms, .period = 50ms}));
  const simulation::Model& model = scenario.models[0];
  EXPECT_EQ(model.rate, 3.5);
  EXPECT_FALSE(model.poisson);
  EXPECT_EQ(model.slo, 40ms);
  EXPECT_EQ(model.overhead, 500us);
  EXPECT_EQ(model.max_batch, 8);
  EXPECT_EQ(model.growth, 0.3);
  EXPECT_EQ(model.spread, 0.1);
  EXPECT_EQ(model.speedup, 2);
  EXPECT_EQ(model.front, 250us);
  EXPECT_EQ(model.steps[0].time, 5ms);
  EXPECT_EQ(model.steps[0].width, 2.5);
  const simulation::Trainer& trainer = scenario.trainers[0];
  EXPECT_EQ(trainer.speedup, 1.5);
  ASSERT_EQ(trainer.steps.size(), 5) << "three times the first";
  EXPECT_TRUE(trainer.steps[2].heavy) << "half of the cores, and a quarter is heavy";
  EXPECT_FALSE(trainer.steps[3].heavy);
  EXPECT_FALSE(trainer.steps[4].heavy) << "as the file says";
}

TEST(SimulateScenario, AGpuHasKernels) {
  const auto file = ParseSimulation(R"({"name": "n", "device": {"kind": "gpu", "sms": 80},
    "models": [{"name": "m", "rate": 1, "kernels": [{"time_ms": 1, "width": 20, "repeat": 2}]}],
    "trainers": [{"name": "t", "kernels": [{"time_ms": 3, "width": 40}, {"time_ms": 2, "width": 0}]}]})");
  ASSERT_TRUE(file) << file.error().message;
  const simulation::Scenario& scenario = file->cases[0].scenario;
  EXPECT_EQ(scenario.models[0].steps.size(), 2);
  EXPECT_TRUE(scenario.trainers[0].steps[0].heavy) << "half of the SMs, which is the default";
  EXPECT_FALSE(scenario.trainers[0].steps[1].heavy);
}

TEST(SimulateScenario, CasesReplaceMembers) {
  const auto file = ParseSimulation(Cpu("", "", "", R"(, "seconds": 5, "cases": [{"name": "short", "seconds": 1},
          {"name": "busy", "models": [{"name": "m", "rate": 99, "service_ms": 1}]}])"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->cases.size(), 2);
  EXPECT_EQ(file->cases[0].scenario.duration, 1s);
  EXPECT_EQ(file->cases[0].scenario.models[0].rate, 10);
  EXPECT_EQ(file->cases[1].scenario.duration, 5s);
  EXPECT_EQ(file->cases[1].scenario.models[0].rate, 99);
}

TEST(SimulateScenario, TheCommandLineComesBeforeTheFile) {
  const auto by_seconds = ParseSimulation(Cpu("", "", ""), {.seconds = 3, .seed = 9});
  ASSERT_TRUE(by_seconds);
  EXPECT_EQ(by_seconds->cases[0].scenario.duration, 3s);
  EXPECT_EQ(by_seconds->cases[0].scenario.seed, 9);
  const auto by_requests = ParseSimulation(Cpu("", "", "", R"(, "rounds": 4)"), {.requests = 1000});
  EXPECT_EQ(by_requests->cases[0].scenario.duration, 25s) << "10 a second, in four rounds";
}

TEST(SimulateScenario, WhatIsWrongIsNamedWithItsValue) {
  EXPECT_EQ(ErrorOf(Cpu("", "", "")), "none") << "or the others say nothing";
  EXPECT_THAT(ErrorOf("{"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(ErrorOf(Cpu("", R"(, "rait": 3)", "")), HasSubstr("/models/0/rait is not known: its value is 3"));
  EXPECT_THAT(ErrorOf(Cpu(R"(, "workers": -1)", "", "")),
              HasSubstr("/device/workers is -1; it must be a whole number"));
  EXPECT_THAT(ErrorOf(Cpu("", R"(, "cores": 3)", "")), HasSubstr("/models/0/cores is 3"));
  EXPECT_THAT(ErrorOf(Cpu("", R"(, "cores": 0)", "")), HasSubstr("/models/0/cores is 0"));
  EXPECT_THAT(ErrorOf(Cpu("", R"(, "arrivals": "never")", "")), HasSubstr(R"(/models/0/arrivals is "never")"));
  EXPECT_THAT(ErrorOf(Cpu("", R"(, "kernels": [])", "")), HasSubstr("/models/0/kernels is not known"));
  EXPECT_THAT(ErrorOf(Cpu("", "", R"(, "width": 1)")), HasSubstr("/trainers/0/ops/0/width is not known"));
  EXPECT_THAT(ErrorOf(Cpu("", "", R"(, "repeat": -1)")), HasSubstr("/trainers/0/ops/0/repeat is -1"));
  EXPECT_THAT(ErrorOf(Cpu("", "", "", R"(, "seed": "x")")), HasSubstr(R"(/seed is "x")"));
  EXPECT_THAT(ErrorOf(Cpu("", "", "", R"(, "admission": "no")")), HasSubstr(R"(/admission is "no")"));
  EXPECT_THAT(ErrorOf(R"({"name": "x"})"), HasSubstr("/device is missing"));
  EXPECT_THAT(ErrorOf(R"({"name": "x", "device": {"kind": "cpu", "cores": 2}})"), HasSubstr("/models is missing"));
  EXPECT_THAT(ErrorOf(R"({"name": "x", "device": {"kind": "tpu"}})"), HasSubstr(R"(/device/kind is "tpu")"));
  EXPECT_THAT(
      ErrorOf(R"({"name": "x", "device": {"kind": "gpu", "sms": 80}, "trainers": [{"name": "t", "kernels": []}]})"),
      HasSubstr("/trainers/0/kernels is []"));
  EXPECT_THAT(ErrorOf(Cpu("", "", "", R"(, "cases": [{"seconds": 1}])")), HasSubstr("/cases/0/name is missing"));
  EXPECT_THAT(ErrorOf(Cpu("", "", "", R"(, "cases": [{"name": "c", "seconds": 0}])")),
              AllOf(HasSubstr("in the case 'c'"), HasSubstr("/seconds is 0")));
}

TEST(SimulateScenario, AllMistakesAreToldAtOnce) {
  EXPECT_THAT(ErrorOf(Cpu(R"(, "workers": 65)", R"(, "spread": -1)", R"(, "time": 3)")),
              AllOf(HasSubstr("/device/workers"), HasSubstr("/models/0/spread"), HasSubstr("/trainers/0/ops/0/time ")));
}

TEST(SimulateScenario, WhatCannotBeSimulatedInReasonableTimeIsRefused) {
  EXPECT_THAT(ErrorOf(Cpu("", "", "", R"(, "seconds": 10000000)")), HasSubstr("/seconds is 1e+07: these would be"));
  EXPECT_THAT(ErrorOf(Cpu("", "", R"(, "repeat": 100000}, {"time_ms": 1, "repeat": 1)")),
              HasSubstr("at most 100000 steps"));
}

TEST(SimulateScenario, AFileThatIsNotThereIsNamed) {
  const auto read = ReadSimulation("/nonexistent/scenario.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(read.error().message, HasSubstr("/nonexistent/scenario.json"));
}

}  // namespace
}  // namespace tandem::cli
