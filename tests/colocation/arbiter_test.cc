#include "colocation/arbiter.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "colocation/board_gate.h"
#include "colocation/board_page.h"
#include "colocation/policies/tandem.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/forbid_calls.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

std::uint64_t StopsOf(const TrainerLease& lease) {
  std::uint64_t count = 0;
  for (const std::uint64_t bucket : lease.Stops().counts) count += bucket;
  return count;
}

class ArbiterTest : public testing::Test {
 protected:
  const std::unique_ptr<const ColocationPolicy> pause_ = MakeColocationPolicy("pause").value();
  Arbiter arbiter_{RealClock::Instance(), *pause_, {}, {}};
};

TEST_F(ArbiterTest, StopsTrainersWhileThePolicySaysSo) {
  const StoppableChild one;
  const StoppableChild two;
  const auto lease = arbiter_.Admit({.pidfd = one.pidfd()});
  arbiter_.RequestBegan();
  EXPECT_TRUE(one.Becomes(true));
  const auto later = arbiter_.Admit({.pidfd = two.pidfd()});
  EXPECT_TRUE(two.Becomes(true)) << "also one that comes in the middle";
  arbiter_.RequestBegan();
  arbiter_.RequestEnded();
  EXPECT_TRUE(lease->held());
  EXPECT_EQ(arbiter_.State().hold, HoldReason::kRequests);
  EXPECT_EQ(arbiter_.State().pending, 1);
  arbiter_.RequestEnded();
  EXPECT_TRUE(one.Becomes(false));
  EXPECT_TRUE(two.Becomes(false));
  EXPECT_GT(lease->HeldTimes().at(HoldReason::kRequests), 0ns);
}

TEST_F(ArbiterTest, CountsHowLongEachStopTook) {
  const StoppableChild one;
  StoppableChild gone;
  const auto lease = arbiter_.Admit({.pidfd = one.pidfd()});
  const auto lost = arbiter_.Admit({.pidfd = gone.pidfd()});
  gone.End();
  EXPECT_EQ(StopsOf(*lease), 0U);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    arbiter_.RequestBegan();
    ASSERT_TRUE(one.Becomes(true));
    EXPECT_TRUE(Eventually([&] { return StopsOf(*lease) == i; })) << i;
    arbiter_.RequestBegan();
    arbiter_.RequestEnded();
    arbiter_.RequestEnded();
    ASSERT_TRUE(one.Becomes(false));
    EXPECT_EQ(StopsOf(*lease), i) << "it is let on, which is no stop";
  }
  EXPECT_GT(lease->Stops().sum, 0ns);
  EXPECT_EQ(StopsOf(*lost), 0U) << "who cannot be signalled does not stop";
}

TEST_F(ArbiterTest, LetsATrainerOnWhoseLeaseEnds) {
  const StoppableChild child;
  auto lease = arbiter_.Admit({.pidfd = child.pidfd()});
  arbiter_.RequestBegan();
  ASSERT_TRUE(child.Becomes(true));
  lease.reset();
  EXPECT_TRUE(child.Becomes(false));
  EXPECT_TRUE(arbiter_.State().trainers.empty());
}

TEST_F(ArbiterTest, TrainersShareOutTheCoresAsLongAsTheyRun) {
  const auto tandem = MakeColocationPolicy("tandem").value();
  Arbiter arbiter(RealClock::Instance(), *tandem, {}, {.cores = 4, .all_cores = 4, .serving_threads = 4});
  const auto ordered = [&](std::vector<int> threads) {
    return Eventually([&] {
      std::vector<int> now;
      for (const TrainerState& trainer : arbiter.State().trainers) now.push_back(trainer.ordered);
      return now == threads;
    });
  };
  const StoppableChild one;
  const StoppableChild two;
  const auto first = arbiter.Admit({.pidfd = one.pidfd(), .threads = 4});
  EXPECT_TRUE(ordered({0}));
  auto second = arbiter.Admit({.pidfd = two.pidfd(), .threads = 4});
  EXPECT_TRUE(ordered({2, 2}));
  first->SetPaused(true);
  EXPECT_TRUE(Eventually([&] { return arbiter.State().trainers[1].ordered == 0; })) << "it is alone";
  first->SetPaused(false);
  EXPECT_TRUE(ordered({2, 2}));
  second->SetWaiting(true);
  EXPECT_TRUE(Eventually([&] { return arbiter.State().trainers[0].ordered == 0; })) << "the other waits for its turn";
  second->SetWaiting(false);
  EXPECT_TRUE(ordered({2, 2}));
  second.reset();
  EXPECT_TRUE(ordered({0}));
}

TEST_F(ArbiterTest, TrainersShareOutAllCoresHoweverFewTheServerComputesWith) {
  const auto tandem = MakeColocationPolicy("tandem").value();
  Arbiter arbiter(RealClock::Instance(), *tandem, {}, {.cores = 16, .all_cores = 16, .serving_threads = 2});
  const StoppableChild one;
  const StoppableChild two;
  const auto first = arbiter.Admit({.pidfd = one.pidfd(), .threads = 16});
  const auto second = arbiter.Admit({.pidfd = two.pidfd(), .threads = 16});
  EXPECT_TRUE(Eventually([&] {
    const std::vector<TrainerState> trainers = arbiter.State().trainers;
    return trainers[0].ordered == 8 && trainers[1].ordered == 8;
  }));
}

TEST_F(ArbiterTest, LetsATrainerOnThatWaitsByItself) {
  const StoppableChild child;
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd()});
  arbiter_.RequestBegan();
  ASSERT_TRUE(child.Becomes(true));
  lease->SetPaused(true);
  EXPECT_TRUE(child.Becomes(false));
  EXPECT_FALSE(lease->held());
  lease->SetPaused(false);
  EXPECT_TRUE(child.Becomes(true));
}

TEST_F(ArbiterTest, OneThatWaitsForItsTurnIsNotStoppedAndTakesNoCores) {
  const StoppableChild child;
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd()});
  lease->SetWaiting(true);
  arbiter_.RequestBegan();
  EXPECT_FALSE(lease->held());
  EXPECT_EQ(arbiter_.State().trainers[0].hold, HoldReason::kTurn);
  lease->SetWaiting(false);
  EXPECT_TRUE(child.Becomes(true)) << "it has its turn, and stands behind requests as all do";
  lease->SetWaiting(true);
  EXPECT_TRUE(child.Becomes(false));
  EXPECT_FALSE(lease->held());
}

TEST_F(ArbiterTest, OneThatAPersonPausedAtItsBoundaryIsPausedAndWaitsForNoTurn) {
  const StoppableChild child;
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd()});
  const auto why = [&] { return arbiter_.State().trainers[0].hold; };
  lease->SetPausedAtBoundary(true);
  EXPECT_EQ(why(), std::nullopt) << "it runs until it comes there";
  lease->SetWaiting(true);
  EXPECT_EQ(why(), HoldReason::kPaused);
  lease->SetPausedAtBoundary(false);
  EXPECT_EQ(why(), HoldReason::kTurn);
  lease->SetWaiting(false);
  EXPECT_EQ(why(), std::nullopt);
}

TEST_F(ArbiterTest, OutlivesATrainerThatIsKilledInAHold) {
  StoppableChild child;
  const StoppableChild other;
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd()});
  const auto second = arbiter_.Admit({.pidfd = other.pidfd()});
  arbiter_.RequestBegan();
  ASSERT_TRUE(child.Becomes(true));
  child.End();
  arbiter_.RequestEnded();
  EXPECT_TRUE(other.Becomes(false));
  arbiter_.RequestBegan();
  EXPECT_TRUE(other.Becomes(true));
  EXPECT_FALSE(lease->held());
  EXPECT_TRUE(lease->lost());
}

TEST_F(ArbiterTest, TellsHowEachTrainerStands) {
  const StoppableChild one;
  const StoppableChild two;
  const auto first = arbiter_.Admit({.pidfd = one.pidfd(), .threads = 2, .job = 7, .pid = one.pid()});
  const auto second = arbiter_.Admit({.pidfd = two.pidfd(), .job = 8});
  second->SetPaused(true);
  std::vector<TrainerState> trainers = arbiter_.State().trainers;
  ASSERT_EQ(trainers.size(), 2u);
  EXPECT_EQ(std::tuple(trainers[0].job, trainers[0].pid, trainers[0].threads), std::tuple(7, one.pid(), 2));
  EXPECT_FALSE(trainers[0].hold);
  EXPECT_EQ(trainers[1].hold, HoldReason::kPaused);
  EXPECT_EQ(trainers[1].permit, Permit::kHold);
  arbiter_.RequestBegan();
  ASSERT_TRUE(one.Becomes(true));
  trainers = arbiter_.State().trainers;
  EXPECT_EQ(trainers[0].hold, HoldReason::kRequests);
  EXPECT_EQ(trainers[1].hold, HoldReason::kPaused) << "it waits because a person said so";
}

// Where a container's policy does not permit all that trainers are held by. The child is made before that.
TEST(Arbiter, StopsByItsNumberWhomItMayNotSignalThroughADescriptor) {
  const StoppableChild child;
  std::thread([&] {
    ASSERT_TRUE(ForbidCalls({SYS_pidfd_send_signal}));
    const auto policy = MakeColocationPolicy("pause").value();
    Arbiter arbiter(RealClock::Instance(), *policy, {}, {});
    auto lease = arbiter.Admit({.pidfd = child.pidfd(), .pid = child.pid()});
    EXPECT_EQ(arbiter.State().trainers[0].means, HoldMeans::kPid);
    for (std::uint64_t i = 1; i <= 2; ++i) {
      arbiter.RequestBegan();
      EXPECT_TRUE(child.Becomes(true)) << i;
      EXPECT_TRUE(Eventually([&] { return StopsOf(*lease) == i; })) << i;
      arbiter.RequestEnded();
      EXPECT_TRUE(child.Becomes(false)) << i;
    }
    EXPECT_FALSE(lease->lost());
    arbiter.RequestBegan();
    EXPECT_TRUE(child.Becomes(true));
    lease.reset();
    EXPECT_TRUE(child.Becomes(false));
  }).join();
}

// One that nobody may signal: all that holds it is its board.
class BoardArbiterTest : public ArbiterTest {
 protected:
  BoardArbiterTest() { gate_.Announce(std::vector<OpInfo>(2)); }

  const std::unique_ptr<TrainerBoard> board_ = TrainerBoard::Create().value();
  BoardGate gate_{*board_, RealClock::Instance(), [](int, int) {}};
};

TEST_F(BoardArbiterTest, HoldsAtItsNextOperatorWhomItMayNotSignal) {
  const auto lease = arbiter_.Admit({.board = board_.get()});
  EXPECT_EQ(lease->means(), HoldMeans::kBoard);
  gate_.Begin(0);
  for (int i = 0; i < 2; ++i) {
    arbiter_.RequestBegan();
    ASSERT_TRUE(Eventually([&] { return lease->held(); }));
    EXPECT_EQ(arbiter_.State().trainers[0].permit, Permit::kHold);
    std::thread op([&] { gate_.Begin(0); });
    EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
    arbiter_.RequestEnded();
    op.join();
    EXPECT_EQ(arbiter_.State().trainers[0].permit, Permit::kRun);
  }
  EXPECT_FALSE(lease->lost());
  EXPECT_EQ(StopsOf(*lease), 0U) << "it tells itself how soon it waits";
  EXPECT_GT(lease->HeldTimes().at(HoldReason::kRequests), 0ns);
}

TEST_F(BoardArbiterTest, ALeaseThatEndsInAHoldLetsItOn) {
  auto lease = arbiter_.Admit({.board = board_.get()});
  arbiter_.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return lease->held(); }));
  std::thread op([&] { gate_.Begin(0); });
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
  lease.reset();
  op.join();
}

TEST_F(BoardArbiterTest, APausedTrainerWaitsWhenTheHoldEnds) {
  const auto lease = arbiter_.Admit({.board = board_.get()});
  arbiter_.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return lease->held(); }));
  std::thread op([&] { gate_.Begin(0); });
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
  lease->SetPaused(true);
  arbiter_.RequestEnded();
  EXPECT_TRUE(Eventually([&] { return !arbiter_.State().hold; }));
  EXPECT_TRUE(board_->Signs().held);
  lease->SetPaused(false);
  op.join();
}

TEST_F(BoardArbiterTest, AnOperatorThatHasBegunIsNoReasonToHoldLightOnes) {
  const auto tandem = MakeColocationPolicy("tandem").value();
  Arbiter arbiter(RealClock::Instance(), *tandem, {}, {});
  const auto lease = arbiter.Admit({.board = board_.get()});
  lease->SetGated({{1, kEveryModel}});
  gate_.Begin(1);
  arbiter.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return arbiter.State().hold_heavy.has_value(); }));
  EXPECT_FALSE(lease->held());
  EXPECT_EQ(arbiter.State().trainers[0].permit, Permit::kLightOnly);
  gate_.Begin(0);
}

TEST(Arbiter, TellsTheTollWhetherATrainerRuns) {
  const auto policy = MakeColocationPolicy("pause").value();
  TrainingToll toll;
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {}, nullptr, &toll);
  // One that runs now; what stopped before is no matter by then.
  const auto runs = [&] { return toll.TrainedSince(RealClock::Instance().Now() + 1h); };
  const StoppableChild child;
  EXPECT_FALSE(runs());
  auto lease = arbiter.Admit({.pidfd = child.pidfd()});
  EXPECT_TRUE(runs());
  arbiter.RequestBegan();
  EXPECT_TRUE(Eventually([&] { return !runs(); }));
  lease->SetPaused(false);
  EXPECT_FALSE(runs()) << "it is held";
  arbiter.RequestEnded();
  EXPECT_TRUE(Eventually(runs));
  lease->SetPaused(true);
  EXPECT_FALSE(runs());
  lease->SetPaused(false);
  EXPECT_TRUE(runs());
  lease.reset();
  EXPECT_FALSE(runs());
}

TEST(Arbiter, ThatHeedsNothingStopsNobody) {
  const auto policy = MakeColocationPolicy("idle").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {});
  const StoppableChild child;
  const auto lease = arbiter.Admit({.pidfd = child.pidfd()});
  arbiter.RequestBegan();
  EXPECT_FALSE(lease->held());
  EXPECT_TRUE(lease->HeldTimes().empty());
  EXPECT_EQ(arbiter.State().policy, "idle");
}

// Periods on a grid of the real clock; nothing is ever used. Borrows the quota, which may be changed.
class GridMeter final : public CpuLimitMeter {
 public:
  explicit GridMeter(const std::atomic<std::chrono::nanoseconds>& quota) : quota_(quota) {}
  [[nodiscard]] std::string name() const override { return "grid"; }
  [[nodiscard]] std::optional<CpuLimit> Limit() override { return CpuLimit{.quota = quota_.load(), .period = 100ms}; }
  [[nodiscard]] Result<CpuUse> Use() override {
    return CpuUse{.used = 0ns,
                  .periods = static_cast<std::uint64_t>(RealClock::Instance().Now().time_since_epoch() / 100ms),
                  .throttled = 4};
  }

 private:
  const std::atomic<std::chrono::nanoseconds>& quota_;
};

// Has not learnt yet what requests need, however long it takes.
class UnknowingPolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "unknowing"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kIdle; }
  [[nodiscard]] bool heeds_quotas() const override { return true; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override {
    ColocationSnapshot unknown = snapshot;
    unknown.demand.reset();
    return TandemPolicy().Decide(unknown);
  }
};

TEST(Arbiter, PacesTrainersByALimit) {
  const UnknowingPolicy policy;
  const std::atomic<std::chrono::nanoseconds> quota{50ms};
  CpuLimitMeters limits;
  limits.meters.push_back(std::make_unique<GridMeter>(quota));
  Arbiter arbiter(RealClock::Instance(), policy, std::move(limits), {.cores = 2, .all_cores = 2, .serving_threads = 2});
  const StoppableChild child;
  const auto lease = arbiter.Admit({.pidfd = child.pidfd()});
  const auto knows = [&] { return arbiter.State().decisions.count() > 0 && !arbiter.State().quotas[0].learning; };
  for (int i = 0; i < 10'000 && !knows(); ++i) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(knows());
  // Every period: it is not the looking for their beginning that stops it.
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(child.Becomes(true)) << i;
    EXPECT_TRUE(child.Becomes(false)) << i;
  }
  const ArbiterState state = arbiter.State();
  ASSERT_EQ(state.quotas.size(), 1u);
  EXPECT_EQ(state.quotas[0].limit->quota, 50ms);
  EXPECT_FALSE(state.quotas[0].learning);
  EXPECT_EQ(state.quotas[0].throttled_periods, 4u);
  EXPECT_GT(lease->HeldTimes().at(HoldReason::kQuota), 0ns);
}

// Of 150 ms one thread for requests never needs more than there is, of 50 ms it does in the first half of each period.
TEST(Arbiter, PacesTrainersByTheTighterOfNestedLimits) {
  const UnknowingPolicy policy;
  std::atomic<std::chrono::nanoseconds> inner{150ms};
  std::atomic<std::chrono::nanoseconds> outer{50ms};
  CpuLimitMeters limits;
  limits.meters.push_back(std::make_unique<GridMeter>(inner));
  limits.meters.push_back(std::make_unique<GridMeter>(outer));
  Arbiter arbiter(RealClock::Instance(), policy, std::move(limits), {.cores = 2, .all_cores = 2, .serving_threads = 1});
  const StoppableChild child;
  const auto lease = arbiter.Admit({.pidfd = child.pidfd()});
  const auto known = [&] {
    const std::vector<ArbiterState::Quota> quotas = arbiter.State().quotas;
    const auto is = [](const ArbiterState::Quota& state, std::chrono::nanoseconds quota) {
      return state.limit && state.limit->quota == quota && !state.learning;
    };
    return arbiter.State().decisions.count() > 0 && is(quotas[0], inner) && is(quotas[1], outer);
  };
  const auto stops_in_each_period = [&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(child.Becomes(true)) << i;
      EXPECT_TRUE(child.Becomes(false)) << i;
    }
  };
  ASSERT_TRUE(Eventually(known));
  stops_in_each_period();
  inner = 50ms;
  outer = 150ms;
  ASSERT_TRUE(Eventually(known));
  stops_in_each_period();
  inner = 150ms;
  ASSERT_TRUE(Eventually(known));
  ASSERT_TRUE(Eventually([&] { return !lease->held(); }));
  const auto held = lease->HeldTimes();
  const std::uint64_t decisions = arbiter.State().decisions.count();
  EXPECT_TRUE(Eventually([&] { return arbiter.State().decisions.count() > decisions + 100; }));
  EXPECT_EQ(lease->HeldTimes(), held) << "neither would stop it by itself";
}

TEST(Arbiter, StopsForRequestsWhomTheKernelDoesNotPutBehindThem) {
  const auto policy = MakeColocationPolicy("tandem").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {});
  const StoppableChild idle;
  const StoppableChild equal;
  const auto first = arbiter.Admit({.pidfd = idle.pidfd(), .yields = true});
  EXPECT_TRUE(arbiter.State().yields);
  arbiter.RequestBegan();
  auto second = arbiter.Admit({.pidfd = equal.pidfd(), .yields = false});
  EXPECT_TRUE(equal.Becomes(true));
  EXPECT_FALSE(arbiter.State().yields);
  EXPECT_EQ(arbiter.State().hold, HoldReason::kRequests);
  arbiter.RequestEnded();
  EXPECT_TRUE(equal.Becomes(false));
  second.reset();
  arbiter.RequestBegan();
  EXPECT_TRUE(Eventually([&] { return arbiter.State().yields; }));
  EXPECT_TRUE(idle.Becomes(false));
}

// A policy that never stops anybody as a whole.
class OpGateArbiterTest : public testing::Test {
 protected:
  const std::unique_ptr<const ColocationPolicy> op_gate_ = MakeColocationPolicy("op_gate").value();
  Arbiter arbiter_{RealClock::Instance(), *op_gate_, {}, {}};
  const std::unique_ptr<TrainerBoard> board_ = TrainerBoard::Create().value();
  BoardGate gate_{*board_, RealClock::Instance(), [](int, int) {}};
};

TEST_F(OpGateArbiterTest, HoldsHeavyOperatorsAtTheirGateAndNoOthers) {
  const StoppableChild child;
  gate_.Announce(std::vector<OpInfo>(2));
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd(), .board = board_.get()});
  lease->SetGated({{1, kEveryModel}});
  arbiter_.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return arbiter_.State().hold_heavy.has_value(); }));
  gate_.Begin(0);
  std::thread heavy([&] { gate_.Begin(1); });
  // It may have gone on by the time that we look: it waits for a while only.
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held || board_->Signs().gated > 0ns; }));
  EXPECT_FALSE(child.Stopped());
  EXPECT_FALSE(lease->held());
  arbiter_.RequestEnded();
  heavy.join();
  EXPECT_FALSE(arbiter_.State().hold_heavy);
}

TEST_F(OpGateArbiterTest, APausedTrainerWaitsWhateverIsDecidedForOthers) {
  const StoppableChild child;
  const StoppableChild other_child;
  const auto other_board = TrainerBoard::Create().value();
  gate_.Announce(std::vector<OpInfo>(1));
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd(), .board = board_.get()});
  const auto other = arbiter_.Admit({.pidfd = other_child.pidfd(), .board = other_board.get()});
  lease->SetPaused(true);
  std::thread op([&] { gate_.Begin(0); });
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
  arbiter_.RequestBegan();
  EXPECT_TRUE(Eventually([&] { return arbiter_.State().hold_heavy.has_value(); }));
  arbiter_.RequestEnded();
  EXPECT_TRUE(Eventually([&] { return !arbiter_.State().hold_heavy; }));
  EXPECT_TRUE(board_->Signs().held) << "others go on";
  lease->SetPaused(false);
  op.join();
}

TEST_F(OpGateArbiterTest, OrdersAreGivenAnewToATrainerThatOverwroteThem) {
  const StoppableChild child;
  gate_.Announce(std::vector<OpInfo>(1));
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd(), .board = board_.get()});
  EXPECT_FALSE(lease->RestoreOrders());
  const std::uint32_t hold = 2;
  ASSERT_EQ(::pwrite(board_->fd(), &hold, sizeof hold, offsetof(TrainerBoard::Page, orders)), 4);
  std::thread op([&] { gate_.Begin(0); });
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
  lease->SetPaused(false);
  EXPECT_TRUE(board_->Signs().held) << "as it was told all along";
  EXPECT_TRUE(lease->RestoreOrders());
  op.join();
  EXPECT_FALSE(arbiter_.Admit({.pidfd = child.pidfd()})->RestoreOrders()) << "who has no board";
}

TEST_F(OpGateArbiterTest, ALeaseThatEndsLetsItsTrainerOn) {
  const StoppableChild child;
  gate_.Announce(std::vector<OpInfo>(1));
  auto lease = arbiter_.Admit({.pidfd = child.pidfd(), .board = board_.get()});
  lease->SetPaused(true);
  std::thread op([&] { gate_.Begin(0); });
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
  lease.reset();
  op.join();
}

TEST_F(OpGateArbiterTest, LeavesAloneWhatHasBegun) {
  const StoppableChild child;
  gate_.Announce(std::vector<OpInfo>(2));
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd(), .board = board_.get()});
  lease->SetGated({{1, kEveryModel}});
  gate_.Begin(1);
  arbiter_.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return arbiter_.State().hold_heavy.has_value(); }));
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(child.Stopped());
}

// Operator 1 is known to slow requests.
class InterruptingArbiterTest : public testing::Test {
 protected:
  InterruptingArbiterTest() {
    gate_.Announce(std::vector<OpInfo>(2));
    lease_->SetGated({{1, kEveryModel}});
  }
  // Nobody is stopped here but in the middle of an operator.
  [[nodiscard]] std::uint64_t Interruptions() const { return StopsOf(*lease_); }

  const std::unique_ptr<const ColocationPolicy> tandem_ = MakeColocationPolicy("tandem").value();
  Arbiter arbiter_{RealClock::Instance(), *tandem_, {}, {}};
  const StoppableChild child_;
  const std::unique_ptr<TrainerBoard> board_ = TrainerBoard::Create().value();
  BoardGate gate_{*board_, RealClock::Instance(), [](int, int) {}};
  const std::unique_ptr<TrainerLease> lease_ = arbiter_.Admit({.pidfd = child_.pidfd(), .board = board_.get()});
};

TEST_F(InterruptingArbiterTest, StopsAnOperatorThatSlowsRequestsWhereItIs) {
  for (std::uint64_t i = 1; i <= 3; ++i) {
    gate_.Begin(1);
    arbiter_.RequestBegan();
    EXPECT_TRUE(Eventually([&] { return Interruptions() == i; })) << i;
    arbiter_.RequestEnded();
    EXPECT_TRUE(child_.Becomes(false)) << i;
  }
  EXPECT_GT(lease_->HeldTimes().at(HoldReason::kRequests), 0ns);
}

TEST_F(InterruptingArbiterTest, LetsOthersRunBesideRequests) {
  gate_.Begin(0);
  arbiter_.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return arbiter_.State().hold_heavy.has_value(); }));
  EXPECT_FALSE(lease_->held());
  gate_.Begin(0);
  EXPECT_EQ(Interruptions(), 0U);
}

TEST_F(InterruptingArbiterTest, RequestsThatNeverEndDoNotEndTraining) {
  gate_.Begin(1);
  arbiter_.RequestBegan();
  EXPECT_TRUE(Eventually([&] { return Interruptions() == 1; }));
  EXPECT_TRUE(Eventually([&] { return !lease_->held(); })) << "though the request is under way";
  EXPECT_FALSE(child_.Stopped());
  EXPECT_GE(lease_->HeldTimes().at(HoldReason::kRequests), TrainerBoard::kMostGated);
  arbiter_.RequestEnded();
  ASSERT_TRUE(Eventually([&] { return !arbiter_.State().hold_heavy; }));
  arbiter_.RequestBegan();
  ASSERT_TRUE(Eventually([&] { return arbiter_.State().hold_heavy.has_value(); }));
  EXPECT_EQ(Interruptions(), 1U) << "the same operator has waited for long enough";
  arbiter_.RequestEnded();
  ASSERT_TRUE(Eventually([&] { return !arbiter_.State().hold_heavy; }));
  gate_.Begin(1);
  arbiter_.RequestBegan();
  EXPECT_TRUE(Eventually([&] { return Interruptions() == 2; })) << "the next has not";
}

// Operator 1 is known to slow requests of one model, and what becomes of those of another.
class ModelArbiterTest : public InterruptingArbiterTest {
 protected:
  ModelArbiterTest() { lease_->SetGated({{1, SetOf(own_)}}); }
  // Has the arbiter look again, and waits until it has decided.
  void Look() {
    for (int i = 0; i < 2; ++i) {  // The first may have begun before.
      const std::uint64_t decided = arbiter_.State().decisions.count();
      const StoppableChild child;
      const auto lease = arbiter_.Admit({.pidfd = child.pidfd()});
      EXPECT_TRUE(Eventually([&] { return arbiter_.State().decisions.count() > decided; }));
    }
  }

  const ModelBit own_ = arbiter_.models().BitOf("own");
  const ModelBit other_ = arbiter_.models().BitOf("other");
};

TEST_F(ModelArbiterTest, AnOperatorStandsStillOnlyForTheModelThatItSlows) {
  gate_.Begin(1);
  arbiter_.RequestBegan(other_);
  Look();
  EXPECT_FALSE(arbiter_.State().hold_heavy);
  EXPECT_EQ(Interruptions(), 0U);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    arbiter_.RequestBegan(own_);
    EXPECT_TRUE(Eventually([&] { return Interruptions() == i; })) << "though others are under way " << i;
    arbiter_.RequestEnded(own_);
    EXPECT_TRUE(child_.Becomes(false)) << "though others are under way " << i;
    gate_.Begin(1);
  }
  EXPECT_FALSE(arbiter_.State().hold_heavy);
  EXPECT_EQ(arbiter_.State().pending, 1);
}

TEST_F(ModelArbiterTest, RequestsOfOtherModelsDoNotEvenWakeIt) {
  gate_.Begin(1);
  Look();
  arbiter_.RequestBegan(own_);
  EXPECT_TRUE(Eventually([&] { return arbiter_.State().hold_heavy.has_value(); }));
  arbiter_.RequestEnded(own_);
  EXPECT_TRUE(Eventually([&] { return !arbiter_.State().hold_heavy; }));
  const std::uint64_t decided = arbiter_.State().decisions.count();
  for (int i = 0; i < 100; ++i) {
    arbiter_.RequestBegan(other_);
    arbiter_.RequestEnded(other_);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_LE(arbiter_.State().decisions.count(), decided + 1) << "one may have been under way";
}

TEST_F(ModelArbiterTest, WorkOfNoModelIsMadeWayForByAll) {
  gate_.Begin(1);
  arbiter_.RequestBegan();
  EXPECT_TRUE(Eventually([&] { return Interruptions() == 1; }));
  arbiter_.RequestEnded();
  EXPECT_TRUE(child_.Becomes(false));
}

TEST_F(ModelArbiterTest, TrainersWaitEachForItsOwnModels) {
  const StoppableChild child;
  const auto board = TrainerBoard::Create().value();
  BoardGate gate(*board, RealClock::Instance(), [](int, int) {});
  gate.Announce(std::vector<OpInfo>(2));
  const auto lease = arbiter_.Admit({.pidfd = child.pidfd(), .board = board.get()});
  lease->SetGated({{1, SetOf(other_)}});
  gate.Begin(1);
  gate_.Begin(1);
  arbiter_.RequestBegan(other_);
  EXPECT_TRUE(Eventually([&] { return StopsOf(*lease) == 1; }));
  EXPECT_EQ(Interruptions(), 0U);
  arbiter_.RequestEnded(other_);
  EXPECT_TRUE(child.Becomes(false));
  arbiter_.RequestBegan(own_);
  EXPECT_TRUE(Eventually([&] { return Interruptions() == 1; }));
  EXPECT_EQ(StopsOf(*lease), 1U);
  arbiter_.RequestEnded(own_);
}

TEST(Arbiter, HearsOfRequestsOnlyWhileSomeOperatorIsKnownToSlowThem) {
  const auto policy = MakeColocationPolicy("tandem").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {});
  const auto board = TrainerBoard::Create().value();
  const StoppableChild child;
  const auto lease = arbiter.Admit({.pidfd = child.pidfd(), .board = board.get()});
  arbiter.RequestBegan();
  lease->SetGated({{0, kEveryModel}});
  EXPECT_TRUE(Eventually([&] { return arbiter.State().hold_heavy.has_value(); })) << "also of one that was there";
  arbiter.RequestEnded();
  EXPECT_TRUE(Eventually([&] { return !arbiter.State().hold_heavy; }));
  lease->SetGated({});
  arbiter.RequestBegan();
  // It is told of something else afterwards; by then it has not taken notice of the request.
  const std::uint64_t decisions = arbiter.State().decisions.count();
  const auto second = arbiter.Admit({.pidfd = child.pidfd()});
  EXPECT_TRUE(Eventually([&] { return arbiter.State().decisions.count() > decisions; }));
  EXPECT_FALSE(arbiter.State().hold_heavy);
}

}  // namespace
}  // namespace tandem
