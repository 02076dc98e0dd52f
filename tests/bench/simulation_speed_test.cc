#include "bench/simulation_speed.h"

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "bench/context.h"
#include "bench/kinds.h"
#include "bench/scenario.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;

// Of a measurement of this kind of the scenario file that is shipped, with few requests or in its own words.
Result<SeriesMap> Measure(const std::string& fields) {
  const std::string text = R"({"name": "mine", "what": "a thing",
    "full": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 1},
    "quick": {"minutes": 1, "rounds": 1, "warmup_s": 0, "window_s": 1},
    "measurements": [{"kind": "simulation_speed", )" +
                           fields + R"(, "rows": [{"metric": "m", "cell": "c", "of": "seconds", "unit": "s"}]}]})";
  TANDEM_ASSIGN(const Scenario scenario, ParseScenario(text, AllKinds()));
  BenchContext context;
  context.pace.rounds = 3;
  context.folder = fs::path(TANDEM_SOURCE_DIR) / "bench" / "scenarios";
  context.say = [](std::string_view) {};
  return scenario.parts.at(0).measurement->Run(context, {"seconds"});
}

constexpr const char* kFile = R"("file": "../../examples/simulate/squeezenet_cpu.json")";

TEST(SimulationSpeed, TimesEachRound) {
  for (const char* of_case : {"", R"(, "case": "load 0.3")", R"(, "case": "load 0.3, quota of 1 core")"}) {
    const auto series = Measure(kFile + std::string(of_case) + R"(, "requests": 1000)");
    ASSERT_TRUE(series) << series.error().message;
    const std::vector<double>& samples = series->at("seconds").samples;
    ASSERT_EQ(samples.size(), 3U);
    for (const double seconds : samples) EXPECT_GT(seconds, 0);
  }
}

TEST(SimulationSpeed, NamesWhatIsNotThere) {
  const auto other_case = Measure(kFile + std::string(R"(, "case": "load 7", "requests": 1000)"));
  ASSERT_FALSE(other_case);
  EXPECT_EQ(other_case.error().message, "../../examples/simulate/squeezenet_cpu.json has no case 'load 7'");
  const auto other_file = Measure(R"("file": "nowhere.json", "requests": 1000)");
  ASSERT_FALSE(other_file);
  EXPECT_TRUE(other_file.error().message.contains("nowhere.json")) << other_file.error().message;
}

}  // namespace
}  // namespace tandem::bench
