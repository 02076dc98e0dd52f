#include "colocation/trainer_reins.h"

#include <thread>

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "colocation/board_gate.h"
#include "tests/fakes/forbid_calls.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kNow(1h);

// Stops the child and lets it on.
void ExpectObeys(TrainerReins& reins, const StoppableChild& child) {
  EXPECT_TRUE(reins.Hold(true, kNow));
  EXPECT_TRUE(child.Becomes(true));
  EXPECT_TRUE(reins.Hold(false, kNow));
  EXPECT_TRUE(child.Becomes(false));
}

TEST(TrainerReins, StopAProcessByItsDescriptorOrByItsNumber) {
  const StoppableChild child;
  TrainerReins both(child.pidfd(), child.pid(), nullptr);
  EXPECT_EQ(both.means(), HoldMeans::kPidfd);
  ExpectObeys(both, child);
  TrainerReins number(-1, child.pid(), nullptr);
  EXPECT_EQ(number.means(), HoldMeans::kPid);
  EXPECT_TRUE(number.at_once());
  ExpectObeys(number, child);
}

TEST(TrainerReins, WhatTheSystemRefusesIsGivenUpForTheNext) {
  const StoppableChild child;
  std::thread([&] {
    ASSERT_TRUE(ForbidCalls({SYS_pidfd_send_signal}));
    TrainerReins reins(child.pidfd(), child.pid(), nullptr);
    EXPECT_EQ(reins.means(), HoldMeans::kPid) << "before anybody is held";
    ExpectObeys(reins, child);
  }).join();
  const auto board = TrainerBoard::Create().value();
  TrainerReins later(child.pidfd(), child.pid(), board.get());
  std::thread([&] {
    ASSERT_TRUE(ForbidCalls({SYS_pidfd_send_signal, SYS_kill}));
    EXPECT_TRUE(later.Hold(true, kNow));
  }).join();
  EXPECT_EQ(later.means(), HoldMeans::kBoard);
  EXPECT_FALSE(later.at_once());
  EXPECT_FALSE(child.Stopped());
  EXPECT_EQ(later.permit(), Permit::kHold);
}

TEST(TrainerReins, AtTheBoardAHoldStandsBeforeWhatOperatorsMayDo) {
  const auto board = TrainerBoard::Create().value();
  BoardGate gate(*board, RealClock::Instance(), [](int, int) {});
  gate.Announce(std::vector<OpInfo>(1));
  TrainerReins reins(-1, 0, board.get());
  EXPECT_EQ(reins.means(), HoldMeans::kBoard);
  reins.SetPermit(Permit::kRun, kEveryModel, kNow);
  gate.Begin(0);
  EXPECT_TRUE(reins.Hold(true, kNow));
  std::thread op([&] { gate.Begin(0); });
  EXPECT_TRUE(Eventually([&] { return board->Signs().held; }));
  reins.SetPermit(Permit::kLightOnly, kEveryModel, kNow);
  reins.SetPermit(Permit::kRun, kEveryModel, kNow);
  EXPECT_EQ(reins.permit(), Permit::kHold);
  EXPECT_TRUE(board->Signs().held);
  EXPECT_TRUE(reins.Hold(false, kNow));
  op.join();
  EXPECT_EQ(reins.permit(), Permit::kRun);
  reins.SetPermit(Permit::kHold, kEveryModel, kNow);
  EXPECT_TRUE(reins.Hold(true, kNow));
  EXPECT_TRUE(reins.Hold(false, kNow));
  EXPECT_EQ(reins.permit(), Permit::kHold) << "it is held for another reason, too";
}

TEST(TrainerReins, WhoHasGoneCannotBeHeld) {
  StoppableChild child;
  const auto board = TrainerBoard::Create().value();
  TrainerReins reins(child.pidfd(), 0, board.get());
  child.End();
  EXPECT_FALSE(reins.Hold(true, kNow));
  EXPECT_EQ(reins.means(), HoldMeans::kPidfd) << "nobody has refused that";
  EXPECT_EQ(reins.permit(), Permit::kRun);
}

TEST(TrainerReins, WithoutAnyMeansNobodyIsHeld) {
  TrainerReins reins(-1, 0, nullptr);
  EXPECT_EQ(reins.means(), HoldMeans::kNone);
  EXPECT_FALSE(reins.Hold(true, kNow));
}

}  // namespace
}  // namespace tandem
