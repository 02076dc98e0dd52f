#include "colocation/policy.h"

#include <array>

#include <gtest/gtest.h>

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
  EXPECT_EQ(Policy("tandem")->Decide({.pending = 1, .gated = true}).hold_heavy, HoldReason::kRequests);
  EXPECT_EQ(Policy("tandem")->Decide({.pending = 0, .gated = true}), ColocationDecision{});
}

TEST(TandemPolicy, HoldsTrainingUntilThePeriodsTimeCannotRunOut) {
  const auto policy = Policy("tandem");
  // One core's worth on two cores: 100 ms of CPU time last for 50 ms, less what is not counted yet.
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 100ms, .until_refill = 100ms}}};
  const auto early = policy->Decide({.held = true, .parallelism = 2, .quotas = quota});
  EXPECT_EQ(early.hold, HoldReason::kQuota);
  EXPECT_EQ(early.look_again, 51ms);
  quota[0].until_refill = 49ms;
  const auto late = policy->Decide({.held = true, .parallelism = 2, .quotas = quota});
  EXPECT_EQ(late.hold, std::nullopt);
  EXPECT_EQ(late.look_again, 4ms) << "more may have been used than could be seen";
  quota[0].until_refill = 2ms;
  EXPECT_EQ(policy->Decide({.held = true, .parallelism = 2, .quotas = quota}).look_again, 2ms)
      << "the next period begins then";
}

TEST(TandemPolicy, HoldsTrainingAgainWhenMoreWasUsedThanCouldBeSeen) {
  const auto policy = Policy("tandem");
  std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 39ms, .until_refill = 20ms}}};
  EXPECT_EQ(policy->Decide({.held = false, .parallelism = 2, .quotas = quota}).hold, HoldReason::kQuota);
  quota[0].left = 41ms;
  EXPECT_EQ(policy->Decide({.held = false, .parallelism = 2, .quotas = quota}).hold, std::nullopt);
  EXPECT_EQ(policy->Decide({.held = true, .parallelism = 2, .quotas = quota}).hold, HoldReason::kQuota)
      << "not to and fro";
}

TEST(TandemPolicy, CountsOnWhatTrainingUsesWhileNobodyAsks) {
  const auto policy = Policy("tandem");
  const std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 75ms, .until_refill = 45ms, .busy = 1.5}}};
  const auto quiet = policy->Decide({.pending = 0, .held = true, .parallelism = 2, .quotas = quota});
  EXPECT_EQ(quiet.hold, std::nullopt);
  EXPECT_TRUE(quiet.until_asked);
  const auto asked = policy->Decide({.pending = 1, .held = true, .parallelism = 2, .quotas = quota});
  EXPECT_EQ(asked.hold, HoldReason::kQuota);
  EXPECT_EQ(asked.look_again, 4ms) << "the request may be done then";
  EXPECT_EQ(policy->Decide({.pending = 0, .held = true, .parallelism = 2, .serving = 2, .quotas = quota}).hold,
            HoldReason::kQuota)
      << "two threads of requests could use more than is left";
}

TEST(TandemPolicy, LetsTrainingHaveItsPartOfATinyQuota) {
  const std::array<QuotaView, 1> quota = {{{.quota = 5ms, .left = 5ms, .until_refill = 500us}}};
  EXPECT_EQ(Policy("tandem")->Decide({.held = true, .parallelism = 8, .quotas = quota}).hold, std::nullopt);
}

TEST(TandemPolicy, LooksAgainAfterAWhileWhenRequestsUseWhatTrainingWaitsFor) {
  const std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = 40ms, .until_refill = 19ms + 10us}}};
  const auto decision = Policy("tandem")->Decide({.held = true, .parallelism = 2, .quotas = quota});
  EXPECT_EQ(decision.hold, HoldReason::kQuota);
  EXPECT_EQ(decision.look_again, 1ms) << "not at once";
}

TEST(TandemPolicy, HoldsUntilTheRefillWhenNothingIsLeft) {
  const std::array<QuotaView, 1> quota = {{{.quota = 100ms, .left = -3ms, .until_refill = 30ms}}};
  const auto decision = Policy("tandem")->Decide({.held = true, .parallelism = 2, .quotas = quota});
  EXPECT_EQ(decision.hold, HoldReason::kQuota);
  EXPECT_EQ(decision.look_again, 30ms);
}

TEST(TandemPolicy, HeedsTheTightestOfSeveralLimits) {
  const std::array<QuotaView, 2> quotas = {
      {{.quota = 100ms, .left = 100ms, .until_refill = 20ms}, {.quota = 100ms, .left = 10ms, .until_refill = 60ms}}};
  const auto decision = Policy("tandem")->Decide({.held = true, .parallelism = 2, .quotas = quotas});
  EXPECT_EQ(decision.hold, HoldReason::kQuota);
  EXPECT_EQ(decision.look_again, 4ms);
}

}  // namespace
}  // namespace tandem
