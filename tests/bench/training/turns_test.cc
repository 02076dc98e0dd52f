#include "bench/training/turns.h"

#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::bench {
namespace {

struct Ends {
  Ends() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0); }
  ~Ends() {
    ::close(fds[0]);
    ::close(fds[1]);
  }
  int fds[2];
};

TEST(Turns, AreTakenOneAfterTheOther) {
  Ends ends;
  int steps = 0;
  std::thread side([&] {
    Turns turns(ends.fds[1]);
    do {
      turns.OpBegins();
      turns.OpBegins();
      ++steps;
    } while (turns.StepDone());
  });
  EXPECT_TRUE(AwaitFirstStep(ends.fds[0]));
  for (const std::int64_t wanted : {3, 5}) {
    const auto turn = TakeTurn(ends.fds[0], 1e6, wanted);
    ASSERT_TRUE(turn) << turn.error().message;
    EXPECT_EQ(turn->steps, wanted);
    EXPECT_GT(turn->longest_op, 0);
    EXPECT_GE(turn->seconds, turn->longest_op);
  }
  const auto by_time = TakeTurn(ends.fds[0], 0, 1'000'000);
  ASSERT_TRUE(by_time) << by_time.error().message;
  EXPECT_EQ(by_time->steps, 1) << "a turn is at least a step";
  ::shutdown(ends.fds[0], SHUT_RDWR);
  side.join();
  EXPECT_EQ(steps, 1 + 3 + 5 + 1);
}

TEST(Turns, ASideThatEndsIsNoticed) {
  Ends ends;
  ::shutdown(ends.fds[1], SHUT_RDWR);
  EXPECT_FALSE(AwaitFirstStep(ends.fds[0]));
  EXPECT_EQ(TakeTurn(ends.fds[0], 1, 1).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tandem::bench
