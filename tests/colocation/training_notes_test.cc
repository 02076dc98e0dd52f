// What an arbiter tells the flight recorder.

#include "colocation/training_notes.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "colocation/arbiter.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

template <typename Event>
std::vector<Event> All(const FlightRecorder& recorder) {
  std::vector<Event> events;
  recorder.training().ForEach([&](const FlightRecord& record) {
    if (const auto event = As<Event>(record)) events.push_back(*event);
  });
  return events;
}

TEST(TrainingNotes, OfAnArbiterTellWhomItHeldAndWhy) {
  FlightRecorder recorder(1024);
  const auto policy = MakeColocationPolicy("pause").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {}, &recorder);
  const StoppableChild child;
  const auto decisions = [&](std::size_t count) {
    for (int i = 0; i < 10'000 && All<TrainingDecision>(recorder).size() < count; ++i) std::this_thread::sleep_for(1ms);
    return All<TrainingDecision>(recorder);
  };
  {
    const auto lease = arbiter.Admit({.pidfd = child.pidfd(), .threads = 3});
    arbiter.RequestBegan();
    ASSERT_EQ(decisions(1).size(), 1u);
    arbiter.RequestBegan();
    arbiter.RequestEnded();
    arbiter.RequestEnded();
    ASSERT_EQ(decisions(2).size(), 2u) << "only changes are told";
  }
  const auto decided = decisions(2);
  EXPECT_EQ(HoldOf(decided[0].hold), HoldReason::kRequests);
  EXPECT_GE(decided[0].requests, 1);
  EXPECT_EQ(decided[0].trainers, 1);
  EXPECT_EQ(HoldOf(decided[1].hold), std::nullopt);
  const auto held = All<TrainerHeld>(recorder);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(HoldOf(held[0].hold), HoldReason::kRequests);
  EXPECT_EQ(HoldOf(held[1].hold), std::nullopt);
  ASSERT_EQ(All<TrainerBegan>(recorder).size(), 1u);
  EXPECT_EQ(All<TrainerBegan>(recorder)[0].threads, 3);
  ASSERT_EQ(All<TrainerEnded>(recorder).size(), 1u);
  EXPECT_EQ(All<TrainerEnded>(recorder)[0].trainers, 0);
}

}  // namespace
}  // namespace tandem
