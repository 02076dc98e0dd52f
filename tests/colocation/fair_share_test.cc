#include "colocation/fair_share.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/queue_forecast.h"
#include "colocation/request_queue.h"
#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::MakeServable;

constexpr std::uint64_t kLevel = 9;

struct Model {
  std::shared_ptr<Servable> servable;
  nanoseconds run{10ms};
};

// A device with one worker, in whose queue requests wait that are run one by one, on a clock of its own.
class Device {
 public:
  Model& Add(double weight, nanoseconds run) {
    auto servable = MakeServable("m" + std::to_string(models_.size()), {.weight = weight});
    servable->latency().Observe(1, run, now_);
    models_.push_back({.servable = std::move(servable), .run = run});
    return models_.back();
  }
  std::deque<Model>& models() { return models_; }
  MonotonicTime now() const { return now_; }
  RequestQueue& queue() { return queue_; }

  QueueKey Push(const Model& model, std::optional<nanoseconds> deadline_in, std::uint64_t level = kLevel) {
    const QueueKey key{
        .priority = level, .deadline = deadline_in ? now_ + *deadline_in : MonotonicTime::max(), .sequence = next_++};
    RequestQueue::Entry entry;
    entry.item.servable = model.servable;
    entry.queued = now_;
    queue_.Push(key, std::move(entry));
    return key;
  }

  struct Done {
    FlowId flow;
    QueueKey key;
    MonotonicTime began;
    nanoseconds waited{0};
    nanoseconds took{0};
  };
  // Runs the request whose turn it is; there must be one.
  Done RunOne() {
    const std::uint64_t level = *queue_.MostUrgentLevel();
    queue_.FlowsOf(level, flows_);
    const Flow* next = FurthestBehind(flows_);
    if (next == nullptr) next = &*std::ranges::min_element(flows_, {}, &Flow::first);
    const Model& model =
        *std::ranges::find(models_, next->id.servable, [](const Model& m) { return m.servable.get(); });
    Done done{.flow = next->id, .key = next->first, .began = now_, .waited = {}, .took = model.run};
    const nanoseconds behind = *next->behind;
    const double weight = next->weight;
    done.waited = now_ - queue_.Take(*model.servable, done.key)->queued;
    const nanoseconds carried = behind - queue_.BehindShare(*model.servable, done.key);
    now_ += model.run;
    if (while_running) while_running();
    queue_.FlowsOf(level, flows_);
    ChargeRun(flows_, {.id = done.flow, .weight = weight, .carried = carried}, model.run);
    return done;
  }
  std::function<void()> while_running;

 private:
  MonotonicTime now_{1h};
  std::uint64_t next_ = 0;
  std::deque<Model> models_;  // Those that were added stay where they are.
  RequestQueue queue_;
  std::vector<Flow> flows_;
};

nanoseconds Milliseconds(std::mt19937_64& random, int least, int most) {
  return std::chrono::milliseconds(std::uniform_int_distribution<int>(least, most)(random));
}
double Weight(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(0.1, 10)(random);
}

TEST(FairShare, NobodyIsFurthestBehindAlone) {
  nanoseconds behind = 10s;
  const std::vector<Flow> flows = {{.id = {}, .weight = 1, .first = {}, .behind = &behind}};
  EXPECT_EQ(FurthestBehind(flows), nullptr);
}

TEST(FairShare, TheOrderOfUrgencyHoldsThroughABurst) {
  const auto holds = rc::check("burst", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Device device;
    for (int i = 0; i < 4; ++i) device.Add(Weight(random), Milliseconds(random, 1, 8));
    std::vector<QueueKey> expected;
    for (int i = 0; i < 60; ++i) {
      const Model& model = device.models()[random() % 4];
      const bool patient = random() % 3 == 0;
      expected.push_back(
          device.Push(model, patient ? std::nullopt : std::optional(Milliseconds(random, 1, 900)), 1 + random() % 3));
    }
    std::ranges::sort(expected);
    for (const QueueKey& key : expected) RC_ASSERT(device.RunOne().key == key);
  });
  EXPECT_TRUE(holds);
}

// Whoever always has something waiting gets its share, over any stretch of time, and no request waits for ever.
TEST(FairShare, EveryModelThatWaitsGetsItsShareWhateverTheOthersDo) {
  const auto holds = rc::check("shares", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Device device;
    const std::size_t count = 2 + random() % 4;
    nanoseconds longest{0};
    double weights = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Model& model = device.Add(Weight(random), Milliseconds(random, 1, 60));
      longest = std::max(longest, model.run);
      weights += model.servable->batching().weight;
    }
    // Each has a kind of its own: without deadlines, or with deadlines of some length.
    std::vector<std::optional<nanoseconds>> kinds(count);
    for (auto& kind : kinds) {
      if (random() % 3 != 0) kind = Milliseconds(random, 1, 2000);
    }
    const auto fill = [&] {
      for (std::size_t i = 0; i < count; ++i) {
        while (device.queue().size(*device.models()[i].servable) < 2) device.Push(device.models()[i], kinds[i]);
      }
    };
    device.while_running = fill;
    fill();
    const MonotonicTime begun = device.now();
    std::map<const Servable*, nanoseconds> had;
    const auto slack = kMostBehind + static_cast<int>(2 * count) * longest;
    while (device.now() - begun < 60s) {
      const Device::Done done = device.RunOne();
      had[done.flow.servable] += done.took;
      nanoseconds sum{0};
      for (const Model& model : device.models()) {
        const double share = model.servable->batching().weight / weights;
        const nanoseconds due(static_cast<std::int64_t>(static_cast<double>((device.now() - begun).count()) * share));
        const nanoseconds more = had[model.servable.get()] - due;
        RC_ASSERT(more > -slack);
        sum += had[model.servable.get()];
        if (done.flow.servable == model.servable.get()) {
          const nanoseconds turns = slack + 3 * model.run;
          RC_ASSERT(done.waited < nanoseconds(static_cast<std::int64_t>(static_cast<double>(turns.count()) / share)));
        }
      }
      RC_ASSERT(sum == device.now() - begun);
    }
  });
  EXPECT_TRUE(holds);
}

TEST(FairShare, RequestsWithAndWithoutDeadlinesOfOneModelDoNotStarveEachOther) {
  for (const bool patient_flood : {false, true}) {
    Device device;
    const Model& model = device.Add(1, 20ms);
    const auto flood = [&] {
      while (device.queue().size(*model.servable) < 6) {
        device.Push(model, patient_flood ? std::nullopt : std::optional<nanoseconds>(100ms));
      }
    };
    flood();
    const QueueKey other = device.Push(model, patient_flood ? std::optional<nanoseconds>(1h) : std::nullopt);
    device.while_running = flood;
    Device::Done done;
    for (int runs = 0; runs < 1000 && done.key != other; ++runs) done = device.RunOne();
    ASSERT_EQ(done.key, other);
    EXPECT_LE(done.waited, 2 * kMostBehind + 100ms);
  }
}

TEST(FairShare, AMoreUrgentLevelIsNotHeldBackByShares) {
  Device device;
  const Model& first = device.Add(1, 20ms);
  const Model& second = device.Add(100, 20ms);
  device.Push(second, std::nullopt, 2);
  for (int i = 0; i < 100; ++i) device.Push(first, 10s, 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(device.RunOne().flow.servable, first.servable.get());
}

// A request has its turn when the forecast says, if nothing comes after it.
TEST(FairShare, TheForecastKnowsOfTheShares) {
  const auto holds = rc::check("forecast", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Device device;
    const std::size_t count = 2 + random() % 3;
    nanoseconds longest{0};
    for (std::size_t i = 0; i < count; ++i)
      longest = std::max(longest, device.Add(Weight(random), Milliseconds(random, 1, 60)).run);
    const auto push = [&] {
      const Model& model = device.models()[random() % count];
      return device.Push(model, random() % 3 == 0 ? std::nullopt : std::optional(Milliseconds(random, 1, 4000)));
    };
    for (int i = 0; i < 150; ++i) push();
    for (int i = static_cast<int>(random() % 100); i > 0; --i) {
      device.RunOne();
      if (random() % 2 == 0) push();
    }
    const Model& model = device.models()[random() % count];
    const nanoseconds deadline_in = Milliseconds(random, 1, 4000);
    std::vector<Flow> flows;
    const QueueKey probe{.priority = kLevel, .deadline = device.now() + deadline_in, .sequence = 1'000'000};
    const nanoseconds forecast = ForecastInQueue(device.queue(), flows, *model.servable, 1, probe, 1h).ahead;
    const nanoseconds enough = Milliseconds(random, 0, 5000);
    const nanoseconds rough = ForecastInQueue(device.queue(), flows, *model.servable, 1, probe, enough).ahead;
    RC_ASSERT((forecast < enough ? rough == forecast : rough >= enough));
    const MonotonicTime begun = device.now();
    const QueueKey key = device.Push(model, deadline_in);
    Device::Done done;
    while (done.key != key) done = device.RunOne();
    const nanoseconds slack = static_cast<int>(2 * count) * longest;
    const nanoseconds actual = done.began - begun;
    RC_ASSERT(actual <= forecast * 5 / 4 + slack);
    RC_ASSERT(forecast <= actual * 5 / 4 + slack);
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
