#include "api/base/cancel_token.h"

#include <atomic>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(CancelToken, TellsListenersOnce) {
  CancelToken token;
  int calls = 0;
  const auto registration = token.OnCancel([&] { ++calls; });
  EXPECT_FALSE(token.cancelled());
  token.Cancel();
  token.Cancel();
  EXPECT_TRUE(token.cancelled());
  EXPECT_EQ(calls, 1);
}

TEST(CancelToken, ALateListenerHearsAtOnce) {
  CancelToken token;
  token.Cancel();
  int calls = 0;
  const auto registration = token.OnCancel([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CancelToken, AListenerThatHasGoneHearsNothing) {
  CancelToken token;
  int calls = 0;
  {
    const auto registration = token.OnCancel([&] { ++calls; });
  }
  token.Cancel();
  EXPECT_EQ(calls, 0);
}

TEST(CancelToken, ARegistrationMayMove) {
  CancelToken token;
  int calls = 0;
  CancelToken::Registration outer;
  {
    auto inner = token.OnCancel([&] { ++calls; });
    outer = std::move(inner);
  }
  token.Cancel();
  EXPECT_EQ(calls, 1);
}

TEST(CancelToken, IsSafeToCancelWhileListenersComeAndGo) {
  for (int round = 0; round < 200; ++round) {
    CancelToken token;
    std::atomic<int> calls = 0;
    std::thread canceller([&] { token.Cancel(); });
    {
      const auto registration = token.OnCancel([&] { ++calls; });
      canceller.join();
    }
    EXPECT_EQ(calls, 1);
  }
}

}  // namespace
}  // namespace tandem
