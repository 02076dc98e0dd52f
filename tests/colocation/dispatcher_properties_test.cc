// What holds for every sequence of requests: on a fake clock, with the real threads.

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <ostream>
#include <ranges>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/dispatcher.h"
#include "colocation/work_forecast.h"
#include "tests/fakes/simulated_device.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::MakeServable;
using testing::MakeTensor;
using testing::SimulatedDevice;

// A model, of times in microseconds.
struct TimedModel {
  int base = 0;
  int each = 0;  // For every element.
  int weight = 1;
  bool dynamic = false;
};

// A request. Each property has its own use for `time` and `percent`.
struct Ask {
  std::size_t model = 0;  // Modulo how many there are.
  int elements = 1;
  int priority = 1;
  int pause = 0;   // Since the one before, in microseconds.
  int pace = 100;  // What its run takes of the usual time, in percent.
  std::optional<int> time;
  int percent = 100;
};

std::ostream& operator<<(std::ostream& out, const TimedModel& model) {
  return out << "{" << model.base << " us + " << model.each << " us each, weight " << model.weight
             << (model.dynamic ? ", joined}" : "}");
}

std::ostream& operator<<(std::ostream& out, const Ask& ask) {
  out << "{model " << ask.model << ", " << ask.elements << " elements, level " << ask.priority << ", after "
      << ask.pause << " us, pace " << ask.pace << ", ";
  if (ask.time) out << "time " << *ask.time << ", ";
  return out << ask.percent << " %}";
}

rc::Gen<std::vector<TimedModel>> Models() {
  const auto model = rc::gen::build<TimedModel>(rc::gen::set(&TimedModel::base, rc::gen::inRange(10, 60'000)),
                                                rc::gen::set(&TimedModel::each, rc::gen::inRange(0, 5'000)),
                                                rc::gen::set(&TimedModel::weight, rc::gen::inRange(1, 5)),
                                                rc::gen::set(&TimedModel::dynamic));
  return rc::gen::resize(3, rc::gen::nonEmpty(rc::gen::container<std::vector<TimedModel>>(model)));
}

rc::Gen<std::optional<int>> Some(rc::Gen<int> value) {
  return rc::gen::map(std::move(value), [](int some) { return std::optional(some); });
}

rc::Gen<std::optional<int>> SomeOrNone(rc::Gen<int> value) {
  return rc::gen::oneOf(rc::gen::just(std::optional<int>()), Some(std::move(value)));
}

rc::Gen<std::vector<Ask>> Asks(rc::Gen<std::optional<int>> time, rc::Gen<int> percent) {
  return rc::gen::container<std::vector<Ask>>(rc::gen::build<Ask>(
      rc::gen::set(&Ask::model, rc::gen::inRange<std::size_t>(0, 3)),
      rc::gen::set(&Ask::elements, rc::gen::inRange(1, 9)), rc::gen::set(&Ask::priority, rc::gen::inRange(1, 3)),
      rc::gen::set(&Ask::pause, rc::gen::oneOf(rc::gen::just(0), rc::gen::inRange(0, 3'000'000))),
      rc::gen::set(&Ask::pace, rc::gen::inRange(50, 300)), rc::gen::set(&Ask::time, std::move(time)),
      rc::gen::set(&Ask::percent, std::move(percent))));
}

// Runs that take so much of their usual time, by a clock that moves only for them; on one thread `narrow` times it.
testing::FakeSession::RunFunction Runs(const TimedModel& model, FakeClock& clock, const std::atomic<int>& percent,
                                       int narrow = 1) {
  return [&clock, &percent, model, narrow](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                           CancelToken& cancel) -> Result<std::vector<Tensor>> {
    const microseconds usual(model.base + inputs[0].shape[0] * model.each);
    clock.Advance(nanoseconds(usual) * narrow * percent.load() / 100);
    if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "cancelled");
    Tensor output = inputs[0];
    output.name = outputs[0];
    return std::vector<Tensor>{output};
  };
}

// A device as it may be set up: whether runs have widths, and how many workers, which are threads then.
DispatcherOptions AnyDevice() {
  const bool widths = *rc::gen::arbitrary<bool>();
  return {.workers = *rc::gen::inRange(widths ? 2 : 1, 4), .widths = widths};
}

// Where runs have widths some models can be run on one thread.
std::vector<std::shared_ptr<Servable>> Make(const std::vector<TimedModel>& kinds, const DispatcherOptions& device,
                                            FakeClock& clock, const std::atomic<int>& percent) {
  std::vector<std::shared_ptr<Servable>> models;
  for (const TimedModel& kind : kinds) {
    const auto weight = static_cast<double>(kind.weight);
    models.push_back(MakeServable("m", {.max_batch_size = 16, .dynamic = kind.dynamic, .weight = weight},
                                  Runs(kind, clock, percent)));
    if (!device.widths || kind.base % 3 == 0) continue;
    const int narrow = 1 + kind.base % (2 * device.workers);
    models.back()->AddNarrow(
        std::make_unique<testing::FakeSession>(testing::PairSignature(), Runs(kind, clock, percent, narrow)),
        device.workers);
  }
  return models;
}

WorkItem Item(std::shared_ptr<Servable> servable, const Ask& ask) {
  WorkItem item;
  item.servable = std::move(servable);
  item.inputs = {MakeTensor("x", DataType::kFp32, {ask.elements, 2},
                            std::vector<float>(static_cast<std::size_t>(2 * ask.elements)))};
  item.outputs = {"y"};
  item.batch = ask.elements;
  item.priority = static_cast<std::uint64_t>(ask.priority);
  item.cancel = std::make_shared<CancelToken>();
  return item;
}

// Whether it was computed; waits for its answer.
bool IsComputed(Dispatcher& dispatcher, WorkItem item) {
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

// Whether what is known of the model says that such a request is in time when it is run at once. What is only a guess,
// or a second old, says nothing.
bool CanBeInTime(const std::optional<RunPrediction>& run, nanoseconds left, MonotonicTime now) {
  const bool counts = run && !run->guessed() && now - run->learnt <= 1s;
  return (counts ? run->high : 0ns) + AnswerMargin(left) <= left;
}

// Runs vary, so what is known of them is never quite what comes. Deadlines lie around what is expected: `time`
// microseconds and `percent` of the high expectation away. What cannot be in time is refused, and nothing else is,
// whatever the others were told before.
TEST(DispatcherProperties, AnIdleDeviceComputesWhatItsModelSaysIsInTimeAndNothingElse) {
  const auto holds = rc::check("idle", [] {
    const auto kinds = *Models();
    const auto asks = *Asks(Some(rc::gen::element(1, 499, 500, 501, 100'000)),
                            rc::gen::oneOf(rc::gen::just(100), rc::gen::inRange(0, 200)));
    FakeClock clock;
    std::atomic<int> pace{100};
    const DeadlineAdmission admission;
    const DispatcherOptions device = AnyDevice();
    const auto models = Make(kinds, device, clock, pace);
    Dispatcher dispatcher(clock, admission, device);
    int refused = 0;
    for (const Ask& ask : asks) {
      clock.Advance(microseconds(ask.pause));
      const auto& model = models[ask.model % models.size()];
      const auto run = model->Predict(ask.elements);
      const nanoseconds left = microseconds(*ask.time) + (run ? run->high : 0ns) * ask.percent / 100;
      pace = ask.pace;
      const MonotonicTime begun = clock.Now();
      WorkItem item = Item(model, ask);
      item.deadline = begun + left;
      const bool can = CanBeInTime(run, left, begun);
      refused += can ? 0 : 1;
      RC_ASSERT(IsComputed(dispatcher, std::move(item)) == can);
      // The worker may not have put it down yet, and until it was expected to be done it counts as busy.
      if (run && clock.Now() < begun + run->typical) clock.Advance(begun + run->typical - clock.Now());
    }
    RC_CLASSIFY(refused > 0, "some are refused");
  });
  EXPECT_TRUE(holds);
}

struct Offered {
  std::shared_ptr<CancelToken> cancel;
  std::atomic<int> answers{0};
  std::atomic<bool> computed{false};
};

// `time` is the deadline's, in microseconds; one of less than 20 `percent` has the client of another go.
TEST(DispatcherProperties, EveryRequestIsAnsweredOnceAndThePatientAreComputed) {
  const auto holds = rc::check("conservation", [] {
    const auto kinds = *Models();
    const auto asks = *Asks(SomeOrNone(rc::gen::inRange(100, 1'000'000)), rc::gen::inRange(0, 100));
    FakeClock clock;
    const std::atomic<int> pace{100};
    const DeadlineAdmission admission;
    const DispatcherOptions device = AnyDevice();
    const auto models = Make(kinds, device, clock, pace);
    std::vector<Offered> offered(asks.size());
    std::latch done(static_cast<std::ptrdiff_t>(asks.size()));
    {
      Dispatcher dispatcher(clock, admission, device);
      for (std::size_t i = 0; i < asks.size(); ++i) {
        clock.Advance(microseconds(asks[i].pause));
        WorkItem item = Item(models[asks[i].model % models.size()], asks[i]);
        Offered& mine = offered[i];
        mine.cancel = item.cancel;
        if (asks[i].time) item.deadline = clock.Now() + microseconds(*asks[i].time);
        item.done = [&](const Result<WorkResult>& result) {
          mine.computed = result.has_value();
          if (mine.answers.fetch_add(1) == 0) done.count_down();
        };
        dispatcher.Submit(std::move(item));
        if (asks[i].percent < 20) offered[static_cast<std::size_t>(asks[i].percent) % (i + 1)].cancel->Cancel();
      }
      done.wait();
    }
    for (std::size_t i = 0; i < asks.size(); ++i) {
      RC_ASSERT(offered[i].answers == 1);
      if (!asks[i].time && !offered[i].cancel->cancelled()) RC_ASSERT(offered[i].computed.load());
    }
  });
  EXPECT_TRUE(holds);
}

TEST(DispatcherProperties, WhatHasBegunToWaitIsAnsweredWhenItStops) {
  const auto holds = rc::check("stop", [] {
    const auto kinds = *Models();
    const auto asks = *Asks(SomeOrNone(rc::gen::inRange(100, 100'000)), rc::gen::just(100));
    FakeClock clock;
    const std::atomic<int> pace{100};
    const DeadlineAdmission admission;
    DispatcherOptions device = AnyDevice();
    device.max_queued = static_cast<std::size_t>(*rc::gen::inRange(1, 50));
    const auto models = Make(kinds, device, clock, pace);
    std::vector<std::atomic<int>> answers(asks.size());
    {
      Dispatcher dispatcher(clock, admission, device);
      for (std::size_t i = 0; i < asks.size(); ++i) {
        WorkItem item = Item(models[asks[i].model % models.size()], asks[i]);
        if (asks[i].time) item.deadline = clock.Now() + microseconds(*asks[i].time);
        item.done = [&mine = answers[i]](const Result<WorkResult>&) { ++mine; };
        dispatcher.Submit(std::move(item));
      }
    }
    for (const std::atomic<int>& mine : answers) RC_ASSERT(mine == 1);
  });
  EXPECT_TRUE(holds);
}

// Requests of one model that have deadlines, or have none; times in milliseconds.
struct FlowKind {
  int run = 1;
  int weight = 1;
  std::optional<int> deadline;
};

std::ostream& operator<<(std::ostream& out, const FlowKind& kind) {
  out << "{runs of " << kind.run << " ms, weight " << kind.weight << ", ";
  return kind.deadline ? out << "deadlines in " << *kind.deadline << " ms}" : out << "no deadlines}";
}

rc::Gen<FlowKind> AnyFlow() {
  return rc::gen::build<FlowKind>(rc::gen::set(&FlowKind::run, rc::gen::inRange(3, 60)),
                                  rc::gen::set(&FlowKind::weight, rc::gen::inRange(1, 9)),
                                  rc::gen::set(&FlowKind::deadline, SomeOrNone(rc::gen::inRange(1, 400))));
}

// A flow of the case, and what becomes of it.
struct FloodedFlow {
  std::size_t model = 0;
  double weight = 1;
  std::optional<milliseconds> deadline;
  int under_way = 0;
  bool answered = false;

  // So that something of it waits when the next run is chosen, whatever was dropped before.
  void Offer(SimulatedDevice& device, int workers) {
    if (!deadline && under_way > workers) return;
    ++under_way;
    device.Offer(model, {.deadline_in = deadline});
  }
};

// All are of one level, and the first never ends. A flow has its share of the device's time, by its weight, but for
// half a second and some runs (docs/decisions/0014): so its first answer comes by the time that its share has come to
// that. Not promised so much, and not here: a flow whose requests are refused on arrival, as they never wait; and one
// of which seldom something waits, as its debt fades meanwhile. Whatever is dropped here is offered anew.
TEST(DispatcherProperties, BesideAFloodEveryFlowHasItsFirstAnswerWhenItsShareHasComeToABound) {
  const auto holds = rc::check("flood", [] {
    const auto flood = *AnyFlow();
    const auto others = *rc::gen::resize(3, rc::gen::nonEmpty(rc::gen::container<std::vector<FlowKind>>(AnyFlow())));
    // Whether the model that floods has requests of the other kind, too.
    const bool both_kinds = *rc::gen::arbitrary<bool>();
    const int workers = *rc::gen::inRange(1, 4);
    const BoundedQueueAdmission admission;
    SimulatedDevice device(admission, workers);
    std::vector<FloodedFlow> flows;
    milliseconds longest{0};
    double weights = 0;
    const auto add = [&](const FlowKind& kind) {
      const milliseconds run(kind.run);
      longest = std::max(longest, run);
      weights += kind.weight;
      flows.push_back({.model = device.Add({.weight = static_cast<double>(kind.weight)}, run),
                       .weight = static_cast<double>(kind.weight)});
      if (kind.deadline) flows.back().deadline = milliseconds(*kind.deadline);
    };
    add(flood);
    for (const FlowKind& kind : others) add(kind);
    if (both_kinds) {
      flows[0].weight /= 2;
      flows.push_back({.model = 0, .weight = flows[0].weight});
      if (!flood.deadline) flows.back().deadline = 100ms;
    }
    const auto offer = [&] {
      for (FloodedFlow& flow : flows) flow.Offer(device, workers);
    };
    for (int i = 0; i <= workers; ++i) offer();
    const MonotonicTime begun = device.now();
    const nanoseconds slack = kMostBehind + (static_cast<int>(flows.size()) + 2 * workers) * longest;
    while (!std::ranges::all_of(flows, &FloodedFlow::answered)) {
      const auto run = device.EndOne(offer);
      const bool patient = !device.offered(run.first).deadline_in;
      for (FloodedFlow& flow : flows) {
        if (flow.model == run.model && !flow.deadline == patient) {
          flow.answered = true;
          --flow.under_way;
        }
        if (flow.answered) continue;
        const double share = flow.weight / weights;
        const auto bound = slack / (share * workers) + longest;
        RC_ASSERT(device.now() - begun <= bound);
      }
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
