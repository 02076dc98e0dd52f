// What holds for every snapshot.

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/policies/tandem.h"
#include "tests/fakes/any_value.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

double AnyCores(int cores) {
  return static_cast<double>(AnyOf(1, std::int64_t{100} * cores)) / 100;
}

std::optional<RequestDemand> AnyDemand(int cores) {
  if (AnyOf(0, 3) == 0) return std::nullopt;
  const nanoseconds each = Coin() ? Between(10us, 999us) : Between(1ms, 300ms);
  return RequestDemand{.cores = Coin() ? 0 : AnyCores(cores),
                       .busy = Coin() ? 0 : AnyCores(cores),
                       .each = each,
                       .uneven = each + Between(0ns, 100ms)};
}

// What is left is anything, or about what some threads need until the next period; where that is near it is much.
QuotaView AnyQuota(int cores) {
  const nanoseconds period = Between(10ms, 1s);
  const nanoseconds quota = Between(1ms, cores * period);
  const nanoseconds until_refill = Between(1us, Coin() ? period : period / 20);
  const nanoseconds left = Coin() ? Between(-quota / 4, quota) : std::min(quota, Between(0ns, 4 * until_refill));
  return {.quota = quota, .left = left, .until_refill = until_refill};
}

// With limits of its own.
struct Seen {
  ColocationSnapshot rest;
  std::vector<QuotaView> quotas;

  [[nodiscard]] ColocationSnapshot snapshot() const {
    ColocationSnapshot snapshot = rest;
    snapshot.quotas = quotas;
    return snapshot;
  }
};

Seen AnySnapshot(int fewest_limits, int most_limits) {
  const auto cores = static_cast<int>(AnyOf(1, 16));
  const std::int64_t pending = Coin() ? 0 : AnyOf(1, 50);
  Seen seen{.rest = {.pending = pending,
                     .held = Coin(),
                     .trainers = static_cast<int>(AnyOf(1, 8)),
                     .parallelism = cores,
                     .serving = static_cast<int>(AnyOf(1, cores)),
                     .demand = AnyDemand(cores),
                     .slowed = pending > 0 && Coin() ? kEveryModel : 0,
                     .yields = Coin(),
                     .now = Between(0ns, 1h)},
            .quotas = {}};
  const std::int64_t limits = AnyOf(fewest_limits, most_limits);
  for (std::int64_t i = 0; i < limits; ++i) seen.quotas.push_back(AnyQuota(cores));
  return seen;
}

nanoseconds SoonestRefill(const Seen& seen) {
  return std::ranges::min(seen.quotas, {}, &QuotaView::until_refill).until_refill;
}

TEST(TandemPolicyProperties, SameSnapshotSameDecision) {
  const auto holds = rc::check("pure", [] {
    const Seen seen = AnySnapshot(0, 3);
    const Seen other = AnySnapshot(0, 3);
    const TandemPolicy policy;
    const ColocationDecision decision = policy.Decide(seen.snapshot());
    const bool hears = policy.HearsOfRequests(seen.snapshot());
    (void)policy.Decide(other.snapshot());
    RC_ASSERT(policy.Decide(seen.snapshot()) == decision);
    RC_ASSERT(TandemPolicy().Decide(seen.snapshot()) == decision);
    RC_ASSERT(policy.HearsOfRequests(seen.snapshot()) == hears);
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, TrainersHaveNoMoreThreadsThanCoresButOneEach) {
  const auto holds = rc::check("threads", [] {
    const Seen seen = AnySnapshot(0, 3);
    const int threads = TandemPolicy().Decide(seen.snapshot()).threads;
    if (seen.quotas.empty() && seen.rest.trainers == 1) {
      RC_ASSERT(threads == 0);  // All that it has.
    } else {
      RC_ASSERT(threads >= 1);
      RC_ASSERT(threads * seen.rest.trainers <= std::max(seen.rest.parallelism, seen.rest.trainers));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, UnderALimitItLooksAgainBeforeTheNextPeriodBeginsAndNotAllTheTime) {
  const auto holds = rc::check("look again", [] {
    const Seen seen = AnySnapshot(0, 3);
    const nanoseconds look_again = TandemPolicy().Decide(seen.snapshot()).look_again;
    if (seen.quotas.empty()) {
      RC_ASSERT(look_again == nanoseconds::max());
    } else {
      RC_ASSERT(look_again <= SoonestRefill(seen));
      RC_ASSERT(look_again >= std::min<nanoseconds>(TandemPolicy::kShortestLook, SoonestRefill(seen)));
    }
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, NobodyTrainsOnWhatRequestsAreLikelyToNeed) {
  const auto holds = rc::check("what is kept", [] {
    Seen seen = AnySnapshot(1, 3);
    QuotaView& quota = seen.quotas[static_cast<std::size_t>(AnyOf(0, std::ssize(seen.quotas) - 1))];
    const nanoseconds need = TandemPolicy::Need(seen.snapshot(), quota.until_refill);
    quota.left = Coin() ? need - Between(0ns, 100ms) : Between(-1s, 0ns);
    RC_ASSERT(TandemPolicy().Decide(seen.snapshot()).hold.has_value());
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, TrainingCannotUseWhatIsKeptBeforeItIsLookedAgainUnlessThatIsInAMillisecond) {
  const auto holds = rc::check("what is used in between", [] {
    Seen seen = AnySnapshot(1, 1);
    seen.rest.yields = true;
    const ColocationDecision decision = TandemPolicy().Decide(seen.snapshot());
    const bool runs = !decision.hold && decision.look_again > TandemPolicy::kShortestLook;
    RC_CLASSIFY(runs, "it runs for longer");
    if (!runs) return;
    const QuotaView& quota = seen.quotas[0];
    const nanoseconds used = decision.threads * seen.rest.trainers * decision.look_again;
    RC_ASSERT(quota.left - used >= TandemPolicy::Need(seen.snapshot(), quota.until_refill - decision.look_again));
  });
  EXPECT_TRUE(holds);
}

// As far as nothing changes: then what is left lasts for long enough from the moment on that is looked again.
TEST(TandemPolicyProperties, WhoIsHeldIsLetOnWhenItLastsAndNotAMillisecondLater) {
  const auto holds = rc::check("how long it holds", [] {
    Seen seen = AnySnapshot(1, 1);
    seen.rest.held = true;
    seen.rest.yields = true;
    const auto decide_in = [&](nanoseconds time) {
      Seen then = seen;
      then.quotas[0].until_refill -= time;
      return TandemPolicy().Decide(then.snapshot());
    };
    const ColocationDecision decision = decide_in(0ns);
    RC_CLASSIFY(!decision.hold, "it runs");
    if (!decision.hold) return;
    const bool before_the_refill = decision.look_again < seen.quotas[0].until_refill;
    RC_CLASSIFY(before_the_refill, "it is let on in this period");
    if (before_the_refill) RC_ASSERT(!decide_in(decision.look_again).hold);
    const nanoseconds just_before = decision.look_again - TandemPolicy::kShortestLook;
    if (just_before > 0ns) RC_ASSERT(decide_in(just_before).hold.has_value());
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, WithoutALimitItHoldsForRequestsAloneAndOnlyWhereTheKernelDoesNotYield) {
  const auto holds = rc::check("no limit", [] {
    const Seen seen = AnySnapshot(0, 0);
    const bool in_the_way = !seen.rest.yields && seen.rest.pending > 0;
    const auto reason = in_the_way ? std::optional(HoldReason::kRequests) : std::nullopt;
    RC_ASSERT(TandemPolicy().Decide(seen.snapshot()).hold == reason);
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, HeavyOperatorsAreHeldWhileThereAreRequestsAndNeverElse) {
  const auto holds = rc::check("heavy operators", [] {
    const Seen seen = AnySnapshot(0, 3);
    const ColocationDecision decision = TandemPolicy().Decide(seen.snapshot());
    const bool heavy = seen.rest.slowed != 0;
    RC_ASSERT(decision.hold_heavy == (heavy ? std::optional(HoldReason::kRequests) : std::nullopt));
    RC_ASSERT(decision.interrupt_heavy == heavy);
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, WhereItDoesNotHearOfRequestsTheyChangeNothingWithoutALimit) {
  const auto holds = rc::check("unheard requests", [] {
    Seen seen = AnySnapshot(0, 0);
    const bool hears = TandemPolicy().HearsOfRequests(seen.snapshot());
    RC_CLASSIFY(!hears, "unheard");
    seen.rest.pending = 0;
    const ColocationDecision without = TandemPolicy().Decide(seen.snapshot());
    seen.rest.pending = AnyOf(1, 1000);
    RC_ASSERT(hears || TandemPolicy().Decide(seen.snapshot()) == without);
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, TheLessIsLeftTheLessIsTrained) {
  const auto holds = rc::check("less left", [] {
    Seen seen = AnySnapshot(1, 3);
    const ColocationDecision more = TandemPolicy().Decide(seen.snapshot());
    QuotaView& quota = seen.quotas[static_cast<std::size_t>(AnyOf(0, std::ssize(seen.quotas) - 1))];
    quota.left -= Between(0ns, quota.quota / 2);
    const ColocationDecision less = TandemPolicy().Decide(seen.snapshot());
    RC_ASSERT(less.threads <= more.threads);
    if (more.hold) RC_ASSERT(less.hold == more.hold);
  });
  EXPECT_TRUE(holds);
}

// Of nested groups each has a limit, and what one leaves the other may not.
TEST(TandemPolicyProperties, EachOfSeveralLimitsHolds) {
  const auto holds = rc::check("several limits", [] {
    const Seen seen = AnySnapshot(2, 3);
    const ColocationDecision all = TandemPolicy().Decide(seen.snapshot());
    bool held = false;
    int threads = seen.rest.parallelism;
    nanoseconds look_again = nanoseconds::max();
    for (const QuotaView& quota : seen.quotas) {
      const ColocationDecision one = TandemPolicy().Decide(Seen{.rest = seen.rest, .quotas = {quota}}.snapshot());
      held |= one.hold.has_value();
      threads = std::min(threads, one.threads);
      look_again = std::min(look_again, one.look_again);
    }
    RC_ASSERT(all.hold.has_value() == held);
    RC_ASSERT(all.threads == threads);
    RC_ASSERT(all.look_again == look_again);
  });
  EXPECT_TRUE(holds);
}

TEST(TandemPolicyProperties, RequestsNeedMoreInMoreTimeAndNeverMoreThanTheyCanUse) {
  const auto holds = rc::check("need", [] {
    Seen seen = AnySnapshot(0, 0);
    const nanoseconds time = Between(0ns, 1s);
    const nanoseconds need = TandemPolicy::Need(seen.snapshot(), time);
    RC_ASSERT(need >= 0ns);
    RC_ASSERT(need <= seen.rest.parallelism * time);
    RC_ASSERT(TandemPolicy::Need(seen.snapshot(), time + Between(0ns, 1s)) >= need);
    seen.rest.pending += AnyOf(0, 10);
    RC_ASSERT(TandemPolicy::Need(seen.snapshot(), time) >= need);
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
