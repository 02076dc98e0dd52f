#include "profiler/turn_events.h"

#include <gtest/gtest.h>

#include "tests/profiler/round_trip.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(TurnEvents, ComeBackAsTheyWere) {
  const auto stands = RoundTrip<TrainerStands, TrainerHeld>({.at = At(3ms),
                                                             .trainer = 5,
                                                             .hold = 4,
                                                             .job = 7,
                                                             .trainers = {.running = 1, .waiting = 2, .paused = 3},
                                                             .decided_hold = 2,
                                                             .decided_hold_heavy = 3});
  EXPECT_EQ(stands.at, At(3ms));
  EXPECT_EQ(stands.trainer, 5u);
  EXPECT_EQ(stands.hold, 4);
  EXPECT_EQ(stands.job, 7);
  EXPECT_EQ(stands.trainers, (TrainerCounts{.running = 1, .waiting = 2, .paused = 3}));
  EXPECT_EQ(stands.decided_hold, 2);
  EXPECT_EQ(stands.decided_hold_heavy, 3);

  const auto began = RoundTrip<TurnBegan, TurnEnded>({.at = At(3ms), .job = 7, .lane = 9});
  EXPECT_EQ(began.at, At(3ms));
  EXPECT_EQ(began.job, 7u);
  EXPECT_EQ(began.lane, 9u);
  const auto ended = RoundTrip<TurnEnded, TurnBegan>({.at = At(5ms), .job = 7, .lane = 9, .began = At(3ms)});
  EXPECT_EQ(ended.at, At(5ms));
  EXPECT_EQ(ended.job, 7u);
  EXPECT_EQ(ended.lane, 9u);
  EXPECT_EQ(ended.began, At(3ms));
}

TEST(TrainerCounts, BeyondWhatARecordHoldsAreAsManyAsItHolds) {
  const auto kept = [](const TrainerCounts& counts) { return TrainerCounts::Unpack(counts.Pack()); };
  constexpr std::int64_t kMost = TrainerCounts::kMost;
  EXPECT_EQ(kept({.running = kMost + 1, .waiting = -1, .paused = kMost}),
            (TrainerCounts{.running = kMost, .waiting = 0, .paused = kMost}));
  EXPECT_EQ(kept({.running = 0, .waiting = kMost + 7, .paused = 1}),
            (TrainerCounts{.running = 0, .waiting = kMost, .paused = 1}));
}

}  // namespace
}  // namespace tandem
