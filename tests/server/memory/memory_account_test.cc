#include "server/memory/memory_account.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "server/memory/heap_in_use.h"

namespace tandem {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

std::shared_ptr<MemoryAccount> Account() {
  return MemoryAccount::Create(BudgetOf({.bytes = 100 * kMiB}, {.device = 200 * kMiB}), 1).value();
}

bool HasNews(const MemoryAccount& account) {
  pollfd polled{.fd = account.news_fd(), .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) == 1;
}

TEST(MemoryAccount, TellsWhenSomebodyMayGetWhatHeWaitsFor) {
  const auto account = Account();
  const SessionId one = account->Ask("job 1", {.persistent = 80 * kMiB}, 0);
  EXPECT_EQ(account->AdmitNext(), one);
  const SessionId two = account->Ask("job 2", {.persistent = 80 * kMiB}, 0);
  EXPECT_FALSE(HasNews(*account));
  account->Leave(one);
  EXPECT_TRUE(HasNews(*account));
  EXPECT_TRUE(account->TakeNews());
  EXPECT_FALSE(account->TakeNews());
  EXPECT_EQ(account->AdmitNext(), two);
  account->SetBudget(BudgetOf({.bytes = 200 * kMiB}, {.device = 200 * kMiB}));
  EXPECT_TRUE(HasNews(*account));
}

TEST(MemoryAccount, WhatIsCountedGoesWithItsOwner) {
  const auto account = Account();
  {
    CountedMemory model(account, MemoryKind::kModel, "m version 1", {.persistent = 10 * kMiB, .ephemeral = kMiB});
    model.Measure(12 * kMiB);
    const MemoryMap map = account->Map();
    ASSERT_EQ(map.sessions.size(), 1U);
    EXPECT_EQ(map.sessions[0].measured, 12 * kMiB);
    EXPECT_EQ(map.use.total(), 11 * kMiB);
  }
  EXPECT_EQ(account->Map().use.total(), 0U);
}

TEST(MemoryAccount, ManyThreadsMayComeAndGo) {
  const auto account = Account();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&account] {
      for (int j = 0; j < 200; ++j) {
        const CountedMemory model(account, MemoryKind::kModel, "m", {.persistent = kMiB, .ephemeral = kMiB});
        const SessionId job = account->Ask("j", {.persistent = kMiB}, 0);
        while (account->AdmitNext()) {
        }
        EXPECT_LE(account->Map().use.persistent, 100 * kMiB);
        account->Leave(job);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(account->Map().use.total(), 0U);
  EXPECT_TRUE(account->Map().waiting.empty());
}

TEST(HeapGrowth, SeesWhatIsTakenAndNothingBesideAnother) {
  if (!HeapInUse()) GTEST_SKIP() << "nobody counts the heap here";
  HeapGrowth growth;
  {
    const HeapGrowth::Look look(growth);
    const std::vector<char> block(8 * kMiB, 'x');
    ASSERT_TRUE(look.Taken());
    EXPECT_GE(*look.Taken(), 8 * kMiB);
    EXPECT_LT(*look.Taken(), 9 * kMiB);
    const HeapGrowth::Look other(growth);
    EXPECT_FALSE(other.Taken());
    EXPECT_FALSE(look.Taken());
  }
  EXPECT_TRUE(HeapGrowth::Look(growth).Taken());
}

}  // namespace
}  // namespace tandem
