// The page between a server and a trainer, with a real process on the other side.

#include "colocation/trainer_board.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

// Until it is so, or for so long that it never will be.
bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

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
    BoardGate gate(**board);
    for (;;) gate.Pass();
  }
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
    board_->Set(Permit::kHold);
    ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
    const std::uint64_t ops = board_->Signs().ops;
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(board_->Signs().ops, ops) << "it went on";
    board_->Set(Permit::kRun);
    ASSERT_TRUE(Moves());
  }
}

TEST_F(TrainerBoardTest, OneThatIsHeldFromTheStartDoesNothing) {
  board_->Set(Permit::kHold);
  StartTrainer();
  ASSERT_TRUE(Eventually([&] { return board_->Signs().held; }));
  EXPECT_EQ(board_->Signs().ops, 1U) << "it asked once";
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
