// The page between a server and a trainer, with a real process on the other side.

#include "colocation/trainer_board.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "colocation/board_gate.h"
#include "colocation/board_page.h"
#include "tests/fakes/eventually.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// tests/integration/colocation_faults_test.py reads it there.
static_assert(offsetof(TrainerBoard::Page, held) == 32840);

class TrainerBoardTest : public testing::Test {
 protected:
  TrainerBoardTest() : board_(TrainerBoard::Create().value()) {}
  ~TrainerBoardTest() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  // A process that passes the gate without end.
  void StartTrainer() {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ != 0) return;
    const auto board = TrainerBoard::Attach(::dup(board_->fd()));
    if (!board) ::_exit(1);
    BoardGate gate(**board, RealClock::Instance(), [](int, int) {});
    const std::array<OpInfo, 2> ops = {{{.kind = "Relu", .name = "light"}, {.kind = "Conv", .name = "heavy"}}};
    gate.Announce(ops);
    for (std::size_t i = 0;; ++i) gate.Begin(i % ops.size());
  }
  void Set(Permit permit) { board_->Set(permit, RealClock::Instance().Now()); }
  bool Moves() {
    const std::uint64_t before = board_->Signs().ops;
    return Eventually([&] { return board_->Signs().ops > before; });
  }

  const std::unique_ptr<TrainerBoard> board_;
  pid_t child_ = 0;
};

TEST_F(TrainerBoardTest, ATrainerRunsUntilItIsHeldAndGoesOnWhenLet) {
  StartTrainer();
  EXPECT_TRUE(Moves());
  for (int i = 0; i < 20; ++i) {
    Set(Permit::kHold);
    ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
    const std::uint64_t ops = board_->Signs().ops;
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(board_->Signs().ops, ops) << "it went on";
    Set(Permit::kRun);
    ASSERT_TRUE(Moves());
  }
}

TEST_F(TrainerBoardTest, OneThatIsHeldFromTheStartDoesNothing) {
  Set(Permit::kHold);
  StartTrainer();
  ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
  EXPECT_EQ(board_->Signs().ops, 1U) << "it asked once";
}

TEST_F(TrainerBoardTest, OnlyGatedOperatorsWaitWhenLightOnesMayRun) {
  Set(Permit::kLightOnly);
  StartTrainer();
  ASSERT_TRUE(Moves()) << "none is gated";
  board_->SetGated({{1, kEveryModel}});
  ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
  board_->SetGated({});
  ASSERT_TRUE(Moves()) << "it goes on though the permit is the same";
  EXPECT_GT(board_->Signs().gated, 0ns) << "it tells how long it has waited";
}

TEST_F(TrainerBoardTest, OperatorsWaitOnlyForTheModelsThatTheyAreGatedFor) {
  constexpr ModelBit kOwn = 3;
  constexpr ModelBit kOther = 5;
  const auto under_way = [&](ModelSet models) { board_->Set(Permit::kLightOnly, RealClock::Instance().Now(), models); };
  // One that waits for as long as it may at every second operator would take minutes.
  const auto runs_freely = [&] {
    const std::uint64_t before = board_->Signs().ops;
    return Eventually([&] { return board_->Signs().ops > before + 10'000; });
  };
  board_->SetGated({{1, SetOf(kOwn)}});
  under_way(SetOf(kOther));
  StartTrainer();
  ASSERT_TRUE(runs_freely());
  under_way(SetOf(kOther) | SetOf(kOwn));
  ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
  under_way(SetOf(kOther));
  EXPECT_TRUE(runs_freely()) << "though the permit is the same";
  EXPECT_EQ(board_->permits_given(), 1U) << "nor is there another to acknowledge";
}

TEST_F(TrainerBoardTest, AnOperatorWaitsBehindRequestsForAWhileOnly) {
  board_->SetGated({{1, kEveryModel}});
  Set(Permit::kLightOnly);
  StartTrainer();
  ASSERT_TRUE(Eventually([&] { return board_->Signs().ops > 6; })) << "requests without end do not end training";
  EXPECT_GE(board_->Signs().gated, 2 * TrainerBoard::kMostGated);
}

TEST_F(TrainerBoardTest, OrdersAreAcknowledged) {
  StartTrainer();
  ASSERT_TRUE(Moves());
  const auto seen = [&] {
    std::uint64_t count = 0;
    for (const std::uint64_t bucket : board_->Acknowledgements().counts) count += bucket;
    return count;
  };
  for (std::uint64_t i = 1; i <= 20; ++i) {
    Set(i % 2 == 1 ? Permit::kHold : Permit::kRun);
    ASSERT_TRUE(Eventually([&] { return seen() == i; })) << i;
  }
  EXPECT_GT(board_->Acknowledgements().sum, 0ns);
}

// Both sides in one process, on a clock that is told how late it is.
class BoardGateTest : public testing::Test {
 protected:
  void Run(std::size_t op, std::chrono::nanoseconds time) {
    gate_.Begin(op);
    clock_.Advance(time);
  }

  const std::unique_ptr<TrainerBoard> board_ = TrainerBoard::Create().value();
  FakeClock clock_;
  const std::unique_ptr<ServingSign> sign_ = ServingSign::Create().value();
  std::vector<std::pair<int, int>> threads_;  // By order, and taken by runs.
  BoardGate gate_{*board_, clock_, [this](int ordered, int taken) { threads_.emplace_back(ordered, taken); },
                  sign_.get()};
};

TEST_F(BoardGateTest, TellsWhatOperatorsTake) {
  const std::vector<OpInfo> ops = {{.kind = "Conv", .name = "first"}, {.kind = "Relu", .name = "\x1b[2Jsecond"}};
  gate_.Announce(ops);
  gate_.Describe(0, {.flops = 3e9, .bytes = 7});
  const MonotonicTime start = clock_.Now();
  for (int i = 0; i < 9; ++i) {
    Run(0, i == 4 ? 2s : 10ms);
    Run(1, 1ms);
    gate_.End();
    clock_.Advance(1h);  // What is between steps belongs to none.
  }
  const auto totals = board_->Totals();
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals[0].op.kind, "Conv");
  EXPECT_EQ(totals[0].count, 9U);
  EXPECT_EQ(totals[0].total, 8 * 10ms + 2s);
  EXPECT_EQ(totals[0].typical, 10ms) << "one that was interrupted hardly counts";
  EXPECT_EQ(totals[0].work.flops, 3e9);
  EXPECT_EQ(totals[0].work.bytes, 7U);
  EXPECT_EQ(totals[1].op.name, "?[2Jsecond") << "nothing that would upset a terminal";
  const auto recent = board_->Recent(start + 1h);
  ASSERT_EQ(recent.size(), 16U) << "those that ended before are left out";
  EXPECT_EQ(recent[0].op, 0U);
  EXPECT_EQ(recent[0].took, 10ms);
  EXPECT_EQ(recent[1].began, recent[0].ended());
}

TEST_F(BoardGateTest, TellsWhetherWhatRunsIsGated) {
  EXPECT_FALSE(board_->RunningGated()) << "nothing runs";
  board_->SetGated({{1, kEveryModel}});
  Run(0, 1ms);
  EXPECT_FALSE(board_->RunningGated());
  Run(1, 1ms);
  ASSERT_TRUE(board_->RunningGated());
  EXPECT_EQ(board_->RunningGated()->place, 1U);
  const std::uint64_t number = board_->RunningGated()->number;
  Run(1, 1ms);
  EXPECT_EQ(board_->RunningGated()->number, number + 1);
  gate_.End();
  EXPECT_FALSE(board_->RunningGated());
  EXPECT_EQ(board_->Signs().ops, 3U);
}

TEST_F(BoardGateTest, WhatRunsIsGatedWhileAModelThatItIsGatedForHasRequests) {
  constexpr ModelBit kOwn = 3;
  constexpr ModelBit kOther = 5;
  board_->SetGated({{1, SetOf(kOwn)}});
  board_->Set(Permit::kLightOnly, clock_.Now(), SetOf(kOther));
  Run(1, 1ms);
  EXPECT_FALSE(board_->RunningGated());
  board_->Set(Permit::kLightOnly, clock_.Now(), SetOf(kOther) | SetOf(kOwn));
  ASSERT_TRUE(board_->RunningGated());
  EXPECT_EQ(board_->RunningGated()->place, 1U);
  board_->SetGated({{1, SetOf(kOther)}});
  EXPECT_TRUE(board_->RunningGated());
  board_->Set(Permit::kLightOnly, clock_.Now(), SetOf(kOwn));
  EXPECT_FALSE(board_->RunningGated());
}

TEST_F(BoardGateTest, AnOrderIsAcknowledgedByWhoHadToStop) {
  const auto times = [&] { return board_->Acknowledgements(); };
  board_->SetGated({{1, kEveryModel}});
  Run(0, 7ms);
  board_->Set(Permit::kLightOnly, clock_.Now());
  clock_.Advance(5ms);
  Run(0, 1ms);
  EXPECT_EQ(times().sum, 0ms) << "it might run beside requests";
  board_->Set(Permit::kRun, clock_.Now());
  Run(1, 2ms);
  EXPECT_EQ(times().sum, 0ms) << "it did not wait";
  board_->Set(Permit::kLightOnly, clock_.Now());
  clock_.Advance(40ms);
  Run(0, 1ms);
  EXPECT_EQ(times().sum, 40ms) << "until the heavy one had ended";
  Run(0, 1ms);
  EXPECT_EQ(times().sum, 40ms) << "once";
}

TEST_F(BoardGateTest, WhoWaitsForItsTurnHasObeyedAtOnce) {
  const auto acknowledged = [&] {
    std::uint64_t count = 0;
    for (const std::uint64_t bucket : board_->Acknowledgements().counts) count += bucket;
    return count;
  };
  board_->SetTurn(Turn::kWait);
  std::thread trainer([&] { EXPECT_TRUE(gate_.BeginIteration()); });
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; }));
  clock_.Advance(1s);
  board_->Set(Permit::kHold, clock_.Now());
  EXPECT_TRUE(Eventually([&] { return acknowledged() == 1; }));
  EXPECT_EQ(board_->Acknowledgements().sum, 0ns) << "it stood still when it was told";
  board_->Set(Permit::kRun, clock_.Now());
  clock_.Advance(2ms);
  board_->SetTurn(Turn::kGo);
  trainer.join();
  EXPECT_EQ(acknowledged(), 2U);
  EXPECT_EQ(board_->Acknowledgements().sum, 2ms) << "until it went on";
}

TEST_F(BoardGateTest, WhoObeysIsBelieved) {
  std::mt19937_64 random(11);
  const MonotonicTime start = clock_.Now();
  AcknowledgementTimes believed;
  board_->SetGated({{1, kEveryModel}});
  Permit permit = Permit::kRun;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 3 == 0) {
      permit = random() % 2 == 0 ? Permit::kLightOnly : Permit::kRun;
      board_->Set(permit, clock_.Now());
    }
    clock_.Advance(std::chrono::microseconds(random() % 5000));
    Run(0, 1us);
    if (permit == Permit::kRun) Run(1, 1us);  // Else it would wait, on a clock that stands still.
    const AcknowledgementTimes told = board_->Acknowledgements();
    ASSERT_TRUE(told.CanFollow(believed, board_->permits_given(), clock_.Now() - start)) << i;
    believed = told;
  }
  EXPECT_GT(believed.sum, 0ns);
}

TEST_F(BoardGateTest, KeepsTheNewestRunsAndHasRoomForEveryOperator) {
  std::vector<OpInfo> ops(TrainerBoard::kOps + 5, OpInfo{.kind = std::string(500, 'k'), .name = ""});
  gate_.Announce(ops);
  for (std::size_t i = 0; i < ops.size(); ++i) Run(i, 1us);
  gate_.End();
  const auto totals = board_->Totals();
  ASSERT_EQ(totals.size(), TrainerBoard::kOps);
  EXPECT_EQ(totals[0].op.kind, std::string(TrainerBoard::kKindBytes, 'k'));
  EXPECT_EQ(totals.back().op.kind, "others");
  EXPECT_EQ(totals.back().count, 6U);
  const auto recent = board_->Recent({});
  ASSERT_EQ(recent.size(), TrainerBoard::kRecords);
  EXPECT_EQ(recent.front().op, 5U);
}

TEST_F(BoardGateTest, ChangesThreadsBetweenOperators) {
  gate_.Announce(std::vector<OpInfo>(1));
  Run(0, 1ms);
  board_->SetThreads(1);
  EXPECT_TRUE(threads_.empty());
  Run(0, 1ms);
  Run(0, 1ms);
  board_->SetThreads(0);
  Run(0, 1ms);
  board_->SetThreads(1'000'000);
  Run(0, 1ms);
  EXPECT_EQ(threads_, (std::vector<std::pair<int, int>>{{1, 0}, {0, 0}, {TrainerBoard::kMostThreads, 0}}));
}

TEST_F(BoardGateTest, SeesBetweenOperatorsWhatRunsHaveTaken) {
  gate_.Announce(std::vector<OpInfo>(1));
  Run(0, 1ms);
  sign_->Show(1);
  EXPECT_TRUE(threads_.empty());
  Run(0, 1ms);
  Run(0, 1ms);
  board_->SetThreads(3);
  Run(0, 1ms);
  sign_->Show(0);
  Run(0, 1ms);
  EXPECT_EQ(threads_, (std::vector<std::pair<int, int>>{{0, 1}, {3, 1}, {3, 0}}));
}

// The pages as a trainer has them, which may write there whatever it likes.
class HostileBoardTest : public TrainerBoardTest {
 protected:
  HostileBoardTest()
      : page_(static_cast<TrainerBoard::Page*>(
            ::mmap(nullptr, sizeof(TrainerBoard::Page), PROT_READ | PROT_WRITE, MAP_SHARED, board_->fd(), 0))) {}
  ~HostileBoardTest() override { ::munmap(page_, sizeof(TrainerBoard::Page)); }

  void ExpectBounded() {
    for (const OpTotals& op : board_->Totals()) {
      EXPECT_GE(op.total, 0ns);
      EXPECT_GE(op.typical, 0ns);
      EXPECT_TRUE(op.work.flops >= 0 && op.work.flops <= 1e30);
      EXPECT_LE(op.op.name.size(), TrainerBoard::kNameBytes);
      for (const char c : op.op.name) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
    }
    for (const OpRecord& record : board_->Recent({})) {
      EXPECT_LT(record.op, TrainerBoard::kOps);
      EXPECT_GE(record.ended(), record.began);
    }
    const auto running = board_->RunningGated();
    EXPECT_TRUE(!running || running->place == 1U);
    EXPECT_GE(board_->Signs().gated, 0ns);
    EXPECT_GE(board_->Acknowledgements().sum, 0ns);
  }

  TrainerBoard::Page* const page_;
};

TEST_F(HostileBoardTest, GarbageIsReadWithinBounds) {
  std::mt19937_64 random(3);
  board_->SetGated({{1, kEveryModel}});
  auto* const bytes = reinterpret_cast<unsigned char*>(page_);
  for (int round = 0; round < 30; ++round) {
    for (std::size_t i = 0; i < sizeof *page_; ++i) {
      bytes[i] = round == 0 ? 0xff : static_cast<unsigned char>(random());
    }
    ExpectBounded();
    // Orders are what the server gave, not what lies there.
    Set(round % 2 == 0 ? Permit::kHold : Permit::kRun);
  }
}

TEST(AcknowledgementTimes, WhatCannotBeTrueIsKnown) {
  AcknowledgementTimes before;
  before.Add(3ms);
  before.Add(3ms);
  AcknowledgementTimes told = before;
  told.Add(1s);
  EXPECT_TRUE(before.CanFollow(before, 2, 1h));
  EXPECT_TRUE(told.CanFollow(before, 3, 1h));
  EXPECT_FALSE(told.CanFollow(before, 2, 1h)) << "more than there were orders";
  EXPECT_FALSE(told.CanFollow(before, 3, 1s)) << "longer than it has lived";
  EXPECT_FALSE(before.CanFollow(told, 3, 1h)) << "it goes back";
  AcknowledgementTimes moved = before;
  --moved.counts[AcknowledgementTimes::BucketOf(3ms)];
  ++moved.counts[0];
  EXPECT_FALSE(moved.CanFollow(before, 3, 1h)) << "another time than it said before";
  AcknowledgementTimes garbage;
  garbage.counts.fill(~std::uint64_t{0});
  EXPECT_FALSE(garbage.CanFollow(before, 3, 1h));
  garbage.counts.fill(0);
  garbage.counts[0] = garbage.counts[1] = std::uint64_t{1} << 63;
  EXPECT_FALSE(garbage.CanFollow({}, 3, 1h)) << "their sum is nothing";
}

TEST_F(HostileBoardTest, LiesInTheRightFormAreReadWithinBounds) {
  std::mt19937_64 random(3);
  page_->op_count.store(~0U);
  page_->records_written.store(1'000'000);
  for (std::uint64_t number = 1'000'000 - TrainerBoard::kRecords; number < 1'000'000; ++number) {
    board::Record& record = page_->records[number % TrainerBoard::kRecords];
    record.sequence.store(2 * (number + 1));
    record.began.store(random());
    record.took.store(random());
    record.op.store(random());
  }
  EXPECT_EQ(board_->Recent({}).size(), TrainerBoard::kRecords);
  EXPECT_EQ(board_->Totals().size(), TrainerBoard::kOps);
  ExpectBounded();
}

TEST_F(HostileBoardTest, OrdersThatWereOverwrittenAreGivenAnew) {
  StartTrainer();
  ASSERT_TRUE(Moves());
  EXPECT_FALSE(board_->Restore()) << "nobody wrote there";
  for (const std::uint32_t garbage : {2U, 3U, 0xffffffffU}) {
    page_->orders.store(garbage);
    ASSERT_TRUE(Eventually([&] { return board_->Signs().held; })) << "it takes them for orders";
    const auto overwritten = board_->Restore();
    ASSERT_TRUE(overwritten);
    EXPECT_EQ(overwritten->found.orders, garbage);
    EXPECT_EQ(page_->orders.load(), overwritten->given.orders);
    EXPECT_TRUE(Moves());
    EXPECT_FALSE(board_->Restore());
  }
  Set(Permit::kHold);
  page_->orders.store(0);
  ASSERT_TRUE(Moves());
  EXPECT_TRUE(board_->Restore());
  EXPECT_TRUE(Eventually([&] { return board_->Signs().held; })) << "it is to wait, whatever it wrote there";
  page_->version.store(77);
  ASSERT_EQ(board_->Restore().value().found.version, 77U);
  EXPECT_EQ(page_->version.load(), board::kVersion);
}

TEST_F(HostileBoardTest, WhoIsHeldLooksAgainByItself) {
  StartTrainer();
  ASSERT_TRUE(Moves());
  page_->orders.store(2);
  ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
  page_->orders.store(0);  // Nobody is woken.
  EXPECT_TRUE(Moves());
}

TEST_F(TrainerBoardTest, ATrainerCannotTakeThePageAway) {
  EXPECT_NE(::ftruncate(board_->fd(), 0), 0);
  EXPECT_EQ(board_->Signs().ops, 0U);
}

TEST_F(TrainerBoardTest, OnlyABoardIsTakenForOne) {
  const int empty = ::memfd_create("empty", MFD_CLOEXEC);
  EXPECT_FALSE(TrainerBoard::Attach(empty));
  ::close(empty);
  EXPECT_FALSE(TrainerBoard::Attach(-1));
  // One of another version: zeros of the right size.
  const int zeros = ::memfd_create("zeros", MFD_CLOEXEC);
  ASSERT_EQ(::ftruncate(zeros, ::lseek(board_->fd(), 0, SEEK_END)), 0);
  const auto other = TrainerBoard::Attach(zeros);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("version 0"), std::string::npos) << other.error().message;
}

}  // namespace
}  // namespace tandem
