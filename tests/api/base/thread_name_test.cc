#include "api/base/thread_name.h"

#include <array>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

namespace tandem {
namespace {

std::string Name() {
  std::array<char, 64> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

TEST(ThreadName, IsWhatTheSystemShows) {
  std::thread([] {
    NameThread("worker-3");
    EXPECT_EQ(Name(), "worker-3");
  }).join();
}

TEST(ThreadName, IsCutToWhatTheSystemKeeps) {
  std::thread([] {
    NameThread("a name that is far too long");
    EXPECT_EQ(Name(), "a name that is ");
  }).join();
}

TEST(ThreadName, FindsThreadsOfANameAndNoOthers) {
  std::thread([] {
    NameThread("seated-1");
    EXPECT_THAT(ThreadsNamed("seated-1"), ::testing::ElementsAre(::gettid()));
    EXPECT_TRUE(ThreadsNamed("seated-").empty());
  }).join();
  EXPECT_TRUE(ThreadsNamed("seated-1").empty());
}

TEST(ScopedThreadName, IsGivenToThreadsThatAreMadeMeanwhile) {
  std::thread([] {
    NameThread("outer");
    {
      const ScopedThreadName pool("pool");
      std::thread([] { EXPECT_EQ(Name(), "pool"); }).join();
    }
    EXPECT_EQ(Name(), "outer");
  }).join();
}

}  // namespace
}  // namespace tandem
