#include "api/base/wake_word.h"

#include <thread>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(WakeWord, WhatIsToldBeforeTheWaitEndsIt) {
  WakeWord word;
  const std::uint32_t seen = word.seen();
  word.Notify();
  word.Wait(seen, std::nullopt);  // Or it would hang.
  EXPECT_NE(word.seen(), seen);
}

TEST(WakeWord, AWaitEndsWithItsTime) {
  WakeWord word;
  word.Wait(word.seen(), 1ms);
  word.Wait(word.seen(), 0ns);
  word.Wait(word.seen(), -1ns);
}

TEST(WakeWord, NothingThatIsToldIsLost) {
  WakeWord word;
  std::atomic<int> told{0};
  std::thread teller([&] {
    for (int i = 0; i < 10'000; ++i) {
      ++told;
      word.Notify();
    }
  });
  for (std::uint32_t seen = word.seen(); told < 10'000; seen = word.seen()) {
    if (told < 10'000) word.Wait(seen, std::nullopt);
  }
  teller.join();
}

}  // namespace
}  // namespace tandem
