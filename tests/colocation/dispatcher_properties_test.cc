// What holds for every sequence of requests: on a fake clock, with the real threads.

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/dispatcher.h"
#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::MakeServable;
using testing::MakeTensor;

// A model whose runs take `base` and so much for each element, by a clock that moves only for them.
std::shared_ptr<Servable> TimedModel(const std::string& name, BatchSettings batching, FakeClock& clock,
                                     nanoseconds base, nanoseconds each) {
  return MakeServable(name, std::move(batching),
                      [&clock, base, each](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                           CancelToken& cancel) -> Result<std::vector<Tensor>> {
                        clock.Advance(base + inputs[0].shape[0] * each);
                        if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "cancelled");
                        Tensor output = inputs[0];
                        output.name = outputs[0];
                        return std::vector<Tensor>{output};
                      });
}

WorkItem Item(std::shared_ptr<Servable> servable, std::int64_t elements) {
  WorkItem item;
  item.servable = std::move(servable);
  item.inputs = {
      MakeTensor("x", DataType::kFp32, {elements, 2}, std::vector<float>(static_cast<std::size_t>(2 * elements)))};
  item.outputs = {"y"};
  item.batch = elements;
  item.cancel = std::make_shared<CancelToken>();
  return item;
}

// Whether it was computed; waits for its answer.
bool Ask(Dispatcher& dispatcher, WorkItem item) {
  bool computed = false;
  std::latch done(1);
  item.done = [&](const Result<WorkResult>& result) {
    computed = result.has_value();
    done.count_down();
  };
  dispatcher.Submit(std::move(item));
  done.wait();
  return computed;
}

nanoseconds Microseconds(std::mt19937_64& random, int least, int most) {
  return std::chrono::microseconds(std::uniform_int_distribution<int>(least, most)(random));
}

TEST(DispatcherProperties, AnIdleDeviceRefusesNothingThatCanBeInTime) {
  const auto holds = rc::check("idle", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    FakeClock clock;
    const DeadlineAdmission admission;
    const nanoseconds base = Microseconds(random, 10, 20'000);
    const nanoseconds each = Microseconds(random, 0, 5'000);
    const auto model = TimedModel("m", {.max_batch_size = 16, .dynamic = true}, clock, base, each);
    Dispatcher dispatcher(clock, admission, {});
    for (int i = 0; i < 60; ++i) {
      if (random() % 4 == 0) clock.Advance(Microseconds(random, 0, 3'000'000));
      const auto elements = static_cast<std::int64_t>(1 + random() % 16);
      const nanoseconds run = base + elements * each;
      // The worker that ran the last may not have put its work down yet; this one is done when it is expected to be.
      RC_ASSERT(Ask(dispatcher, Item(model, 1)));
      WorkItem item = Item(model, elements);
      // Half of them cannot be in time; what they are told must not spoil it for the others.
      const bool can = random() % 2 == 0;
      const nanoseconds within = can ? run * 27 / 20 + 1ms : run / 2;
      item.deadline = clock.Now() + within;
      const bool computed = Ask(dispatcher, std::move(item));
      if (can) RC_ASSERT(computed);
    }
  });
  EXPECT_TRUE(holds);
}

struct Offered {
  bool patient = false;
  std::shared_ptr<CancelToken> cancel;
  std::atomic<int> answers{0};
  std::atomic<bool> computed{false};
};

TEST(DispatcherProperties, EveryRequestIsAnsweredOnceAndThePatientAreComputed) {
  const auto holds = rc::check("conservation", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    FakeClock clock;
    const DeadlineAdmission admission;
    std::vector<std::shared_ptr<Servable>> models;
    for (int i = 0; i < 3; ++i) {
      BatchSettings settings{.max_batch_size = 8, .dynamic = random() % 2 == 0};
      settings.weight = static_cast<double>(1 + random() % 4);
      models.push_back(TimedModel(std::to_string(i), settings, clock, Microseconds(random, 10, 60'000), 1ms));
    }
    constexpr std::size_t kRequests = 150;
    std::vector<Offered> offered(kRequests);
    std::latch done(kRequests);
    {
      Dispatcher dispatcher(clock, admission, {.workers = 1 + static_cast<int>(random() % 3), .max_queued = kRequests});
      for (std::size_t i = 0; i < kRequests; ++i) {
        WorkItem item = Item(models[random() % models.size()], static_cast<std::int64_t>(1 + random() % 4));
        Offered& mine = offered[i];
        mine.patient = random() % 3 == 0;
        mine.cancel = item.cancel;
        item.priority = 1 + random() % 2;
        if (!mine.patient) item.deadline = clock.Now() + Microseconds(random, 100, 1'000'000);
        item.done = [&](const Result<WorkResult>& result) {
          mine.computed = result.has_value();
          if (mine.answers.fetch_add(1) == 0) done.count_down();
        };
        dispatcher.Submit(std::move(item));
        if (random() % 10 == 0) {
          Offered& gone = offered[random() % (i + 1)];
          gone.cancel->Cancel();
        }
      }
      done.wait();
    }
    for (const Offered& each : offered) {
      RC_ASSERT(each.answers == 1);
      if (each.patient && !each.cancel->cancelled()) RC_ASSERT(each.computed.load());
    }
  });
  EXPECT_TRUE(holds);
}

TEST(DispatcherProperties, WhatHasBegunToWaitIsAnsweredWhenItStops) {
  const auto holds = rc::check("stop", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    FakeClock clock;
    const DeadlineAdmission admission;
    const auto model = TimedModel("m", {.max_batch_size = 8, .dynamic = true}, clock, 1ms, 1ms);
    std::vector<std::atomic<int>> answers(1 + random() % 100);
    {
      Dispatcher dispatcher(clock, admission, {.max_queued = 50});
      for (std::atomic<int>& mine : answers) {
        WorkItem item = Item(model, 1);
        if (random() % 2 == 0) item.deadline = clock.Now() + Microseconds(random, 100, 100'000);
        item.done = [&mine](const Result<WorkResult>&) { ++mine; };
        dispatcher.Submit(std::move(item));
      }
    }
    for (const std::atomic<int>& mine : answers) RC_ASSERT(mine == 1);
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
