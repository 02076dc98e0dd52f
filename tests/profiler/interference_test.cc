#include "profiler/interference.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime At(std::chrono::nanoseconds time) {
  return MonotonicTime(time);
}

// Operators 0 to 4 in turn, 4 ms each; runs of 2 ms that come at any time, and take `times` as long beside operator 3.
InterferenceMeter Trained(double times, int runs, const std::string& model = "m") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  std::uniform_int_distribution<std::int64_t> when(0, 4'000'000'000);
  std::vector<OpRecord> ops;
  for (std::uint32_t i = 0; i < 1100; ++i) ops.push_back({.op = i % 5, .began = At(i * 4ms), .took = 4ms});
  InterferenceMeter meter;
  for (int i = 0; i < runs; ++i) {
    const std::chrono::nanoseconds began(when(random));
    const bool beside = began % 20ms > 10ms + 200us && began % 20ms < 15ms + 800us;
    meter.Observe(
        {.model = model, .began = At(began), .ended = At(began + 2ms), .ratio = noise(random) * (beside ? times : 1)},
        ops);
  }
  return meter;
}

// The operator with the one model of which anything is known beside it.
std::optional<Interference> Only(const InterferenceMeter& meter, std::uint32_t op) {
  const std::vector<Interference> known = meter.Of(op);
  if (known.empty()) return std::nullopt;
  EXPECT_EQ(known.size(), 1U);
  return known[0];
}

TEST(InterferenceMeter, FindsTheOperatorBesideWhichRequestsTakeLonger) {
  const InterferenceMeter meter = Trained(1.3, 2000);
  const auto guilty = Only(meter, 3);
  ASSERT_TRUE(guilty);
  EXPECT_EQ(guilty->model, "m");
  EXPECT_NEAR(guilty->ratio, 1.3, 0.03);
  EXPECT_LT(guilty->error, 0.02);
  EXPECT_GT(guilty->runs, 300);
  for (const std::uint32_t op : {0U, 1U}) EXPECT_LT(Only(meter, op)->ratio, 1.02) << op;
  EXPECT_FALSE(Only(meter, 9)) << "there is no such operator";
}

TEST(InterferenceMeter, FindsNothingWhereThereIsNothing) {
  const InterferenceMeter meter = Trained(1, 2000);
  for (std::uint32_t op = 0; op < 5; ++op) EXPECT_NEAR(Only(meter, op)->ratio, 1, 0.02) << op;
}

// A step of 200 operators of 2 ms each, over and over again, beside 60 runs a second of 5 ms that vary by a third as
// runs do, and are not slowed by any operator. Those that are taken to slow them at any time of four minutes.
int TakenToSlow(std::uint64_t seed) {
  constexpr std::uint32_t kOps = 200;
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> ratio(0, 0.3);
  std::uniform_int_distribution<std::int64_t> when(0, 1'000'000'000);
  InterferenceMeter meter;
  std::vector<std::optional<OpClass>> classes(kOps);
  int slow = 0;
  for (int second = 0; second < 240; ++second) {
    const MonotonicTime begins = At(std::chrono::seconds(second));
    std::vector<OpRecord> ops;
    for (std::uint32_t i = 0; i < 510; ++i) {
      ops.push_back(
          {.op = (static_cast<std::uint32_t>(second) * 500 + i) % kOps, .began = begins + i * 2ms, .took = 2ms});
    }
    meter.Age(1s);
    for (int i = 0; i < 60; ++i) {
      const MonotonicTime began = begins + std::chrono::nanoseconds(when(random));
      meter.Observe({.model = "m", .began = began, .ended = began + 5ms, .ratio = ratio(random)}, ops);
    }
    for (std::uint32_t op = 0; op < kOps; ++op) {
      const auto seen = Only(meter, op);
      const auto before = std::exchange(classes[op], seen ? OpClassifier::Beside(*seen, classes[op]) : std::nullopt);
      if (before != OpClass::kHeavy && classes[op] == OpClass::kHeavy) ++slow;
    }
  }
  return slow;
}

TEST(InterferenceMeter, ChanceAloneBlamesNoOperator) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) EXPECT_EQ(TakenToSlow(seed), 0) << seed;
}

TEST(InterferenceMeter, SaysNothingOfWhatItHasSeldomSeen) {
  EXPECT_FALSE(Only(Trained(1.3, 40), 3));
}

TEST(InterferenceMeter, TellsModelsApart) {
  InterferenceMeter meter = Trained(1.3, 2000, "slowed");
  const std::vector<OpRecord> ops = {{.op = 3, .began = At(0ms), .took = 4ms}};
  for (int i = 0; i < 40; ++i) {
    meter.Observe({.model = "hardy", .began = At(1ms), .ended = At(3ms), .ratio = 1}, ops);
    meter.Observe({.model = "hardy", .began = At(5ms), .ended = At(6ms), .ratio = 1}, ops);
    meter.Observe({.model = "rare", .began = At(5ms), .ended = At(6ms), .ratio = 1}, ops);
  }
  const std::vector<Interference> known = meter.Of(3);
  ASSERT_EQ(known.size(), 2U) << "of the third it has seen no run beside it";
  EXPECT_EQ(known[0].model, "hardy");
  EXPECT_NEAR(known[0].ratio, 1, 1e-9);
  EXPECT_EQ(known[1].model, "slowed");
  EXPECT_NEAR(known[1].ratio, 1.3, 0.03);
}

TEST(InterferenceMeter, ForgetsSoThatAnOperatorGetsAnotherChance) {
  InterferenceMeter meter = Trained(1.3, 2000);
  meter.Age(InterferenceMeter::kHalfLife);
  EXPECT_TRUE(Only(meter, 3));
  meter.Age(20 * InterferenceMeter::kHalfLife);
  EXPECT_FALSE(Only(meter, 3));
}

TEST(InterferenceMeter, DoesNotLetOneRunSpeakForAThousand) {
  InterferenceMeter meter = Trained(1, 2000);
  const double before = Only(meter, 2)->ratio;
  const std::vector<OpRecord> ops = {{.op = 2, .began = At(0ms), .took = 4ms}};
  meter.Observe({.model = "m", .began = At(1ms), .ended = At(3ms), .ratio = 1e9}, ops);
  EXPECT_LT(Only(meter, 2)->ratio, before * 1.02);
}

TEST(InterferenceMeter, ARunIsBesideAnOperatorOnlyForANotableTime) {
  InterferenceMeter meter;
  const std::vector<OpRecord> ops = {{.op = 0, .began = At(0ms), .took = 1ms},
                                     {.op = 1, .began = At(1ms), .took = 9ms}};
  for (int i = 0; i < 100; ++i) {
    meter.Observe({.model = "m", .began = At(950us), .ended = At(3ms), .ratio = 2}, ops);
    meter.Observe({.model = "m", .began = At(12ms), .ended = At(14ms), .ratio = 1}, ops);
  }
  EXPECT_FALSE(Only(meter, 0)) << "50 µs of 2 ms";
  EXPECT_NEAR(Only(meter, 1)->ratio, 2, 1e-9);
}

}  // namespace
}  // namespace tandem
