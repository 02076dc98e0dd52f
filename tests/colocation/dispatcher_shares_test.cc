// Nobody waits for ever: the dispatcher with its threads, on a clock of the test's.

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/simulated_device.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::SimulatedDevice;
using Request = SimulatedDevice::Request;
using HeldRun = SimulatedDevice::HeldRun;

constexpr int kSeeds = 25;

nanoseconds Milliseconds(std::mt19937_64& random, int least, int most) {
  return std::chrono::milliseconds(std::uniform_int_distribution<int>(least, most)(random));
}

// Offers until so many requests of the model wait, and at least one whose deadline has not passed.
void Fill(SimulatedDevice& device, std::size_t model, std::size_t most, const Request& request) {
  if (request.deadline_in) device.Offer(model, request);
  while (device.waiting(model) < most) device.Offer(model, request);
}

TEST(DispatcherShares, TheOrderOfUrgencyHoldsThroughABurst) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const BoundedQueueAdmission admission;
    SimulatedDevice device(admission, 1);
    std::uniform_real_distribution<double> weight(0.1, 10);
    for (int i = 0; i < 4; ++i) device.Add({.weight = weight(random)}, Milliseconds(random, 1, 8));
    device.Offer(0, {});
    device.Running();
    std::vector<std::pair<QueueKey, std::size_t>> expected;
    for (int i = 0; i < 60; ++i) {
      Request request{.level = 1 + random() % 3};
      if (random() % 3 != 0) request.deadline_in = Milliseconds(random, 600, 1500);
      const std::size_t number = device.Offer(random() % 4, request);
      expected.emplace_back(
          QueueKey{.priority = request.level,
                   .deadline = request.deadline_in ? device.now() + *request.deadline_in : MonotonicTime::max(),
                   .sequence = number},
          number);
    }
    std::ranges::sort(expected);
    for (const auto& [key, number] : expected) {
      device.EndOne();
      ASSERT_EQ(device.Running().front().first, number);
    }
  }
}

// Whoever always has something waiting gets its share of what its level has, over any stretch of time.
TEST(DispatcherShares, EveryModelGetsItsShareOfItsLevel) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const BoundedQueueAdmission admission;
    const int workers = 1 + seed % 3;
    SimulatedDevice device(admission, workers);
    const std::size_t count = 2 + random() % 3;
    std::uniform_real_distribution<double> weight(0.2, 5);
    nanoseconds longest{0};
    double weights = 0;
    std::vector<Request> kinds(count);
    for (std::size_t i = 0; i < count; ++i) {
      // The first joins its requests.
      BatchSettings settings{.max_batch_size = i == 0 ? 8 : 1, .dynamic = i == 0, .weight = weight(random)};
      weights += settings.weight;
      const nanoseconds run = Milliseconds(random, 5, 60);
      longest = std::max(longest, run);
      device.Add(settings, run);
      if (random() % 3 != 0) kinds[i].deadline_in = Milliseconds(random, 1, 2000);
    }
    const auto offer = [&] {
      const std::size_t urgent = random() % (10 * count);
      if (urgent < count) device.Offer(urgent, {.level = 1});
      for (std::size_t i = 0; i < count; ++i) Fill(device, i, i == 0 ? 20 : 8, kinds[i]);
    };
    offer();
    std::vector<nanoseconds> had(count);
    nanoseconds all{0};
    const nanoseconds slack = kMostBehind + (static_cast<int>(count) + 2 * workers) * longest;
    const MonotonicTime begun = device.now();
    while (device.now() - begun < 15s) {
      const HeldRun run = device.EndOne(offer);
      if (device.offered(run.first).level == 1) continue;
      had[run.model] += run.ends - run.began;
      all += run.ends - run.began;
      for (std::size_t i = 0; i < count; ++i) {
        const double share = device.model(i).batching().weight / weights;
        const nanoseconds due(static_cast<std::int64_t>(static_cast<double>(all.count()) * share));
        ASSERT_GT(had[i], due - slack) << "model " << i;
      }
    }
  }
}

class StarvationTest : public ::testing::TestWithParam<int> {
 protected:
  // Ends runs while there are always more of the flood, until that request runs; when, counted from now.
  nanoseconds TurnOf(SimulatedDevice& device, std::size_t number, const std::function<void()>& flood) {
    const MonotonicTime begun = device.now();
    while (device.now() - begun < 20s) {
      if (std::ranges::contains(device.Running(), number, &HeldRun::first)) return device.now() - begun;
      device.EndOne(flood);
    }
    return nanoseconds::max();
  }
  const BoundedQueueAdmission admission_;
};

TEST_P(StarvationTest, APatientRequestHasItsTurnBesideAFloodWithDeadlines) {
  for (const bool same_model : {false, true}) {
    SimulatedDevice device(admission_, GetParam());
    const std::size_t flooded = device.Add({}, 20ms);
    const std::size_t other = same_model ? flooded : device.Add({}, 20ms);
    const auto flood = [&] { Fill(device, flooded, 12, {.deadline_in = 200ms}); };
    flood();
    device.Running();
    const std::size_t number = device.Offer(other, {});
    EXPECT_LE(TurnOf(device, number, flood), 2 * kMostBehind + 100ms);
  }
}

TEST_P(StarvationTest, WhatAModelHasOnOneLevelIsNotCountedOnAnother) {
  SimulatedDevice device(admission_, GetParam());
  const std::size_t flooded = device.Add({}, 20ms);
  const std::size_t both = device.Add({}, 5ms);
  int events = 0;
  const auto flood = [&] {
    Fill(device, flooded, 8, {.deadline_in = 200ms});
    if (++events % 4 == 0) device.Offer(both, {.level = 1});
  };
  flood();
  device.Running();
  const std::size_t number = device.Offer(both, {});
  EXPECT_LE(TurnOf(device, number, flood), 2 * kMostBehind + 500ms);
}

// Its requests are dropped one after the other: when its deadline is the nearest, something else runs until after it.
TEST_P(StarvationTest, AModelOfWhichSeldomSomethingWaitsHasItsTurn) {
  SimulatedDevice device(admission_, GetParam());
  const std::size_t flooded = device.Add({}, 30ms);
  const std::size_t seldom = device.Add({}, 30ms);
  const auto flood = [&] { Fill(device, flooded, 8, {.deadline_in = 10ms}); };
  flood();
  device.Running();
  int turns = 0;
  MonotonicTime next = device.now();
  const MonotonicTime begun = device.now();
  while (device.now() - begun < 30s) {
    const HeldRun run = device.EndOne([&] {
      flood();
      if (device.now() < next) return;
      device.Offer(seldom, {.deadline_in = 105ms});
      next = device.now() + 300ms;
    });
    if (run.model == seldom) ++turns;
  }
  EXPECT_GE(turns, 2);
}

INSTANTIATE_TEST_SUITE_P(Workers, StarvationTest, ::testing::Values(1, 2, 3));

TEST(DispatcherShares, WhoIsBehindTakesOneWorkerForItsDebtAndNotAll) {
  const BoundedQueueAdmission admission;
  SimulatedDevice device(admission, 2);
  const std::size_t flooded = device.Add({.weight = 3}, 10ms);
  const std::size_t patient = device.Add({}, 400ms);
  device.model(patient).latency().Observe(1, 400ms, device.now());
  const auto flood = [&] {
    Fill(device, flooded, 8, {.deadline_in = 200ms});
    Fill(device, patient, 8, {});
  };
  flood();
  int turns = 0;
  const MonotonicTime begun = device.now();
  while (device.now() - begun < 20s) {
    const HeldRun ended = device.EndOne(flood);
    const std::vector<HeldRun> runs = device.Running();
    if (ended.model == patient) ++turns;
    ASSERT_FALSE(std::ranges::all_of(runs, [&](const HeldRun& run) { return run.model == patient; }));
  }
  EXPECT_GE(turns, 20) << "a quarter of two workers";
}

TEST(DispatcherShares, AnotherLevelOfTheModelDoesNotRunForItsDebt) {
  const BoundedQueueAdmission admission;
  SimulatedDevice device(admission, 1);
  const std::size_t flooded = device.Add({}, 20ms);
  const std::size_t delayed =
      device.Add({.max_batch_size = 4, .dynamic = true, .preferred_sizes = {4}, .max_queue_delay = 1h}, 20ms);
  const auto flood = [&] { Fill(device, flooded, 4, {.level = 1, .deadline_in = 200ms}); };
  flood();
  device.Running();
  // Waits for company, which those of the other level are not.
  device.Offer(delayed, {.level = 1});
  for (int i = 0; i < 4; ++i) device.Offer(delayed, {.level = 9, .width = 3});
  for (int i = 0; i < 100; ++i) ASSERT_EQ(device.EndOne(flood).model, flooded);
  EXPECT_EQ(device.waiting(delayed), 5u);
}

// Lets everything in, and remembers what was expected of the last.
class Listening final : public AdmissionPolicy {
 public:
  Status Admit(const AdmissionSnapshot& snapshot) const override {
    ahead = snapshot.work_ahead;
    run = snapshot.run ? snapshot.run->typical : nanoseconds(0);
    return {};
  }
  RunWeight WeightOf(const AdmissionSnapshot&) const override { return RunWeight::kIgnored; }
  bool IsHopeless(MonotonicTime, MonotonicTime, const std::optional<RunPrediction>&) const override { return false; }

  // The test's thread only.
  mutable nanoseconds ahead{0};
  mutable nanoseconds run{0};
};

// A request has its turn when the forecast says, if nothing comes after it.
TEST(DispatcherShares, TheForecastKnowsOfTheShares) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const Listening admission;
    SimulatedDevice device(admission, 1);
    const std::size_t count = 2 + random() % 3;
    std::uniform_real_distribution<double> weight(0.2, 5);
    nanoseconds longest{0};
    for (std::size_t i = 0; i < count; ++i) {
      const nanoseconds run = Milliseconds(random, 2, 60);
      longest = std::max(longest, run);
      const std::size_t model = device.Add({.weight = weight(random)}, run);
      device.model(model).latency().Observe(1, run, device.now());
    }
    const auto offer = [&] {
      Request request;
      if (random() % 3 != 0) request.deadline_in = 10s + Milliseconds(random, 1, 4000);
      return device.Offer(random() % count, request);
    };
    for (int i = 0; i < 150; ++i) offer();
    for (int i = static_cast<int>(random() % 100); i > 0; --i) {
      device.EndOne([&] {
        if (random() % 2 == 0) offer();
      });
    }
    device.Running();
    const MonotonicTime begun = device.now();
    const std::size_t number = device.Offer(random() % count, {.deadline_in = 10s + Milliseconds(random, 1, 4000)});
    const nanoseconds expected = admission.ahead;
    while (device.Running().front().first != number) device.EndOne();
    const nanoseconds actual = device.now() - begun;
    const nanoseconds slack = static_cast<int>(2 * count) * longest;
    EXPECT_LE(actual, expected * 5 / 4 + slack);
    EXPECT_LE(expected, actual * 5 / 4 + slack);
  }
}

TEST(DispatcherShares, WhatARequestSharesItsRunWithIsNotExpectedTwice) {
  const Listening admission;
  SimulatedDevice device(admission, 1);
  const std::size_t batching = device.Add({.max_batch_size = 32, .dynamic = true}, 400ms);
  const std::size_t other = device.Add({}, 10ms);
  for (int size : {1, 32}) device.model(batching).latency().Observe(size, 400ms, device.now());
  device.model(other).latency().Observe(1, 10ms, device.now());
  device.Offer(other, {});
  device.Running();
  for (int i = 0; i < 63; ++i) device.Offer(batching, {.deadline_in = 1s});
  const auto expect_two_runs = [&](nanoseconds before) {
    device.Offer(batching, {.deadline_in = 1s});
    EXPECT_EQ(admission.ahead, before + 400ms);
    EXPECT_EQ(admission.run, 400ms) << "with 31 others";
  };
  expect_two_runs(10ms);
  // The 64 are two runs. Now somebody else waits as well, and is nearly so far behind that it counts.
  for (int i = 0; i < 20; ++i) device.Offer(other, {});
  device.EndOne();
  device.Running();
  for (int i = 0; i < 31; ++i) device.Offer(batching, {.deadline_in = 1s});
  expect_two_runs(400ms);
}

}  // namespace
}  // namespace tandem
