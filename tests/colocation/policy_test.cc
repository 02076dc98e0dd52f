#include "colocation/policy.h"

#include <array>

#include <gtest/gtest.h>

#include "colocation/policies/tandem.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<const ColocationPolicy> Policy(std::string_view name) {
  return MakeColocationPolicy(name).value();
}

TEST(ColocationPolicy, IsChosenByName) {
  for (const std::string_view name : ColocationPolicyNames()) EXPECT_EQ(Policy(name)->name(), name);
  EXPECT_EQ(ColocationPolicyNames().front(), "tandem");
  const auto unknown = MakeColocationPolicy("tandom");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "co-location policy 'tandom' is not known; known are tandem, none, nice, idle, pause, partition, "
            "time_slice, op_gate");
}

TEST(ColocationPolicy, RanksTrainers) {
  EXPECT_EQ(Policy("tandem")->trainer_class(), TrainerClass::kIdle);
  EXPECT_EQ(Policy("idle")->trainer_class(), TrainerClass::kIdle);
  EXPECT_EQ(Policy("nice")->trainer_class(), TrainerClass::kNice);
  EXPECT_EQ(Policy("none")->trainer_class(), TrainerClass::kNormal);
}

TEST(ColocationPolicy, BaselinesNeverHoldTraining) {
  const std::array<QuotaView, 1> spent = {{{.left = 0ms, .until_refill = 90ms}}};
  for (const char* name : {"none", "nice", "idle", "partition"}) {
    EXPECT_EQ(Policy(name)->Decide({.pending = 7, .parallelism = 2, .quotas = spent}), ColocationDecision{}) << name;
  }
}

TEST(PausePolicy, HoldsTrainingWhileARequestIsUnderWay) {
  EXPECT_EQ(Policy("pause")->Decide({.pending = 1}).hold, HoldReason::kRequests);
  EXPECT_EQ(Policy("pause")->Decide({.pending = 0}).hold, std::nullopt);
}

TEST(TimeSlicePolicy, GivesEveryOtherSliceToRequestsWhileThereAreAny) {
  const auto policy = Policy("time_slice");
  EXPECT_EQ(policy->Decide({.pending = 0, .now = 15ms}), ColocationDecision{});
  const auto training = policy->Decide({.pending = 1, .now = 3ms});
  EXPECT_EQ(training.hold, std::nullopt);
  EXPECT_EQ(training.look_again, 7ms);
  const auto serving = policy->Decide({.pending = 1, .now = 10ms});
  EXPECT_EQ(serving.hold, HoldReason::kRequests);
  EXPECT_EQ(serving.look_again, 10ms);
}

TEST(OpGatePolicy, HoldsOnlyHeavyOperatorsWhileARequestIsUnderWay) {
  EXPECT_EQ(Policy("op_gate")->Decide({.pending = 1}), ColocationDecision{.hold_heavy = HoldReason::kRequests});
  EXPECT_EQ(Policy("op_gate")->Decide({.pending = 0}), ColocationDecision{});
  EXPECT_EQ(Policy("op_gate")->gated_ops(), GatedOps::kHeavy);
}

TEST(PartitionPolicy, DividesTheCoresUnlessThereIsOnlyOne) {
  EXPECT_EQ(Policy("partition")->ServingCores(1), std::nullopt);
  EXPECT_EQ(Policy("partition")->ServingCores(2), 1);
  EXPECT_EQ(Policy("partition")->ServingCores(7), 4);
  EXPECT_EQ(Policy("tandem")->ServingCores(8), std::nullopt);
}

TEST(TandemPolicy, RunsTrainingWhereNothingIsLimited) {
  EXPECT_EQ(Policy("tandem")->Decide({.pending = 100, .parallelism = 2}), ColocationDecision{});
}

TEST(TandemPolicy, HoldsOperatorsThatWereSeenToSlowRequestsWhileThereAreAny) {
  EXPECT_EQ(Policy("tandem")->gated_ops(), GatedOps::kHeavyAsMeasured);
  EXPECT_EQ(Policy("tandem")->Decide({.pending = 1, .slowed = 2}),
            (ColocationDecision{.hold_heavy = HoldReason::kRequests, .interrupt_heavy = true}));
  EXPECT_EQ(Policy("tandem")->Decide({.pending = 1, .slowed = 0}), ColocationDecision{}) << "those of other models";
}

TEST(TandemPolicy, HoldsTrainingWhileARequestIsUnderWayWhereTheKernelDoesNotYield) {
  const auto policy = Policy("tandem");
  EXPECT_EQ(policy->Decide({.pending = 1, .yields = false}).hold, HoldReason::kRequests);
  EXPECT_EQ(policy->Decide({.pending = 0, .yields = false}).hold, std::nullopt);
  EXPECT_EQ(policy->Decide({.pending = 1, .yields = true}).hold, std::nullopt);
}

TEST(TandemPolicy, HearsOfRequestsOnlyWhereThatChangesAnything) {
  const auto policy = Policy("tandem");
  const std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 100ms, .until_refill = 100ms}}};
  EXPECT_FALSE(policy->HearsOfRequests({}));
  EXPECT_FALSE(policy->HearsOfRequests({.slowed = 2})) << "of those models it hears in any case";
  EXPECT_TRUE(policy->HearsOfRequests({.yields = false}));
  EXPECT_TRUE(policy->HearsOfRequests({.quotas = quota})) << "they may be long";
  EXPECT_TRUE(policy->HearsOfRequests({.demand = RequestDemand{.each = 5ms}, .quotas = quota}));
  EXPECT_FALSE(policy->HearsOfRequests({.demand = RequestDemand{.each = 90us}, .quotas = quota}));
}

// One core's worth on two cores, which requests can use both.
ColocationSnapshot Limited(const std::array<QuotaView, 1>& quota) {
  return {.held = true, .parallelism = 2, .serving = 2, .quotas = quota};
}

TEST(TandemPolicy, KeepsWhatRequestsCouldUseUntilItKnowsWhatTheyDo) {
  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 100ms, .until_refill = 100ms}}};
  const auto early = policy->Decide(Limited(quota));
  EXPECT_EQ(early.hold, HoldReason::kQuota);
  // 100 ms last for 50 ms of two threads, less what is not counted yet.
  EXPECT_GE(early.look_again, 50ms + 500us);
  EXPECT_LE(early.look_again, 52ms);
  quota[0].until_refill = 49ms;
  const auto late = policy->Decide(Limited(quota));
  EXPECT_EQ(late.hold, std::nullopt);
  EXPECT_EQ(late.threads, 2) << "it lasts for so many";
  quota[0].until_refill = 500us;
  EXPECT_EQ(policy->Decide(Limited(quota)).look_again, 500us) << "the next period begins then";
}

TEST(TandemPolicy, KeepsWhatRequestsAreLikelyToNeed) {
  const RequestDemand demand{.cores = 0.25, .each = 4ms, .uneven = 9ms};
  // 25 ms on average, 1.5 deviations of 15 ms, and one request more; with two under way, those.
  EXPECT_EQ(TandemPolicy::Need({.serving = 2, .demand = demand}, 100ms), 25ms + 22'500us + 4ms);
  EXPECT_EQ(TandemPolicy::Need({.pending = 2, .serving = 2, .demand = demand}, 100ms), 25ms + 22'500us + 12ms);
  EXPECT_EQ(TandemPolicy::Need({.serving = 2, .demand = RequestDemand{.each = 4ms}}, 100ms), 4ms)
      << "the first after a quiet time";
  EXPECT_EQ(TandemPolicy::Need({.serving = 2, .demand = demand}, 1ms), 2ms) << "two threads cannot use more";
  EXPECT_EQ(TandemPolicy::Need({.serving = 2}, 100ms), 200ms);
  const RequestDemand much{.cores = 0.9, .busy = 1.25, .each = 4ms, .uneven = 90ms};
  EXPECT_EQ(TandemPolicy::Need({.serving = 2, .demand = much}, 100ms), 125ms) << "they never use more at once";

  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 100ms, .until_refill = 100ms}}};
  ColocationSnapshot snapshot = Limited(quota);
  snapshot.demand = demand;
  const auto enough = policy->Decide(snapshot);
  EXPECT_EQ(enough.hold, std::nullopt);
  EXPECT_EQ(enough.threads, 1) << "it would not last for two";
  quota[0].left = 52ms;
  EXPECT_EQ(policy->Decide(snapshot).hold, HoldReason::kQuota);
}

TEST(TandemPolicy, KeepsThePaceAtWhichOneThreadLastsForThePeriodEvenWhenRequestsMayNeedAllOfIt) {
  // One thread for requests, and one core's worth: whoever runs, one at a time, uses as much as there is.
  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 61ms, .until_refill = 60ms}}};
  const ColocationSnapshot snapshot{.parallelism = 2,
                                    .serving = 1,
                                    .demand = RequestDemand{.cores = 0.7, .each = 10ms, .uneven = 20ms},
                                    .quotas = quota};
  EXPECT_EQ(policy->Decide(snapshot).hold, std::nullopt);
  EXPECT_EQ(policy->Decide(snapshot).look_again, TandemPolicy::kRunningLook);
  quota[0].left = 60ms;
  EXPECT_EQ(policy->Decide(snapshot).hold, HoldReason::kQuota) << "half a millisecond is not counted yet";
}

TEST(TandemPolicy, StandsStillForRequestsUnderWayUnlessWhatIsLeftLastsForBoth) {
  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 61ms, .until_refill = 60ms}}};
  ColocationSnapshot snapshot{.pending = 1,
                              .parallelism = 2,
                              .serving = 1,
                              .demand = RequestDemand{.cores = 0.1, .each = 10ms, .uneven = 10ms},
                              .quotas = quota};
  EXPECT_EQ(policy->Decide(snapshot).hold, HoldReason::kQuota);
  quota[0].until_refill = 20ms;
  EXPECT_EQ(policy->Decide(snapshot).hold, std::nullopt);
  EXPECT_EQ(policy->Decide(snapshot).threads, 2) << "20 ms for requests, and 20 for each of two threads";
  quota[0].until_refill = 60ms;
  snapshot.demand->each = 100us;
  EXPECT_EQ(policy->Decide(snapshot).hold, std::nullopt) << "it is over before training could stop";
}

TEST(TandemPolicy, TrainsBesideRequestsThatLeavePartOfALargeQuota) {
  const std::array<QuotaView, 1> quota = {{{.quota = 400ms, .left = 400ms, .until_refill = 100ms}}};
  const ColocationSnapshot snapshot{.pending = 1,
                                    .parallelism = 16,
                                    .serving = 4,
                                    .demand = RequestDemand{.cores = 0.5, .each = 5ms, .uneven = 5ms},
                                    .quotas = quota};
  const auto decision = Policy("tandem")->Decide(snapshot);
  EXPECT_EQ(decision.hold, std::nullopt);
  EXPECT_EQ(decision.threads, 3);
}

TEST(TandemPolicy, LooksMoreOftenTheLessThereIsToSpare) {
  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 90ms, .until_refill = 100ms}}};
  ColocationSnapshot snapshot = Limited(quota);
  snapshot.demand = RequestDemand{.cores = 0.25, .each = 4ms, .uneven = 9ms};
  EXPECT_EQ(policy->Decide(snapshot).look_again, TandemPolicy::kRunningLook);
  quota[0].left = 55ms;
  EXPECT_EQ(policy->Decide(snapshot).look_again, 2'500us);
  quota[0].left = 52'600us;
  EXPECT_EQ(policy->Decide(snapshot).look_again, TandemPolicy::kShortestLook);
}

TEST(TandemPolicy, SharesWhatIsLeftOutToAllTrainers) {
  const std::array<QuotaView, 1> quota = {{{.quota = 410ms, .left = 401ms, .until_refill = 50ms}}};
  ColocationSnapshot snapshot{.trainers = 2, .parallelism = 8, .quotas = quota};
  EXPECT_EQ(Policy("tandem")->Decide(snapshot).threads, 4);
  snapshot.trainers = 20;
  EXPECT_EQ(Policy("tandem")->Decide(snapshot).threads, 1);
}

TEST(TandemPolicy, SeveralTrainersShareOutTheCores) {
  const auto policy = Policy("tandem");
  EXPECT_EQ(policy->Decide({.trainers = 1, .parallelism = 8}).threads, 0) << "all that it has";
  EXPECT_EQ(policy->Decide({.trainers = 2, .parallelism = 8}).threads, 4);
  EXPECT_EQ(policy->Decide({.trainers = 3, .parallelism = 8}).threads, 2);
  EXPECT_EQ(policy->Decide({.trainers = 9, .parallelism = 8}).threads, 1);
  EXPECT_EQ(Policy("idle")->Decide({.trainers = 9, .parallelism = 8}).threads, 0);
}

TEST(TandemPolicy, SeveralTrainersShareOutTheCoresHoweverMuchIsLeftOfAQuota) {
  const std::array<QuotaView, 1> quota = {{{.quota = 700ms, .left = 700ms, .until_refill = 10ms}}};
  ColocationSnapshot snapshot{.trainers = 1, .parallelism = 8, .quotas = quota};
  EXPECT_EQ(Policy("tandem")->Decide(snapshot).threads, 8);
  snapshot.trainers = 3;
  EXPECT_EQ(Policy("tandem")->Decide(snapshot).threads, 2) << "with more one would wait for another's";
}

TEST(TandemPolicy, HoldsAndRunsNotToAndFro) {
  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 40'700us, .until_refill = 20ms}}};
  ColocationSnapshot snapshot = Limited(quota);
  EXPECT_EQ(policy->Decide(snapshot).hold, HoldReason::kQuota);
  snapshot.held = false;
  EXPECT_EQ(policy->Decide(snapshot).hold, std::nullopt);
  quota[0].left = 39ms;
  EXPECT_EQ(policy->Decide(snapshot).hold, HoldReason::kQuota);
}

TEST(TandemPolicy, LetsTrainingHaveItsPartOfATinyQuota) {
  const std::array<QuotaView, 1> quota = {{{.quota = 5ms, .left = 5ms, .until_refill = 500us}}};
  EXPECT_EQ(Policy("tandem")->Decide({.held = true, .parallelism = 8, .quotas = quota}).hold, std::nullopt);
}

TEST(TandemPolicy, HoldsUntilTheRefillWhenNothingIsLeft) {
  const std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = -3ms, .until_refill = 30ms}}};
  const auto decision = Policy("tandem")->Decide(Limited(quota));
  EXPECT_EQ(decision.hold, HoldReason::kQuota);
  EXPECT_EQ(decision.look_again, 30ms);
}

TEST(TandemPolicy, HeedsTheTightestOfSeveralLimits) {
  const std::array<QuotaView, 2> quotas = {
      {{.quota = 100ms, .left = 100ms, .until_refill = 20ms}, {.quota = 100ms, .left = 10ms, .until_refill = 60ms}}};
  const auto decision = Policy("tandem")->Decide({.held = true, .parallelism = 2, .quotas = quotas});
  EXPECT_EQ(decision.hold, HoldReason::kQuota);
  EXPECT_EQ(decision.look_again, TandemPolicy::kRunningLook) << "the first is looked at in the meantime";
  EXPECT_EQ(decision.threads, 1);
}

}  // namespace
}  // namespace tandem
