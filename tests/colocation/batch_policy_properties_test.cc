// What holds for whatever waits.

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/batch_policy.h"
#include "colocation/work_forecast.h"
#include "tests/fakes/any_value.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct Waiting {
  BatchSettings settings;
  std::vector<std::int64_t> sizes;
  nanoseconds oldest_wait{0};
  std::vector<nanoseconds> left;
  std::vector<nanoseconds> runs;

  [[nodiscard]] BatchDecision Choose() const {
    return ChooseBatch({.settings = settings, .sizes = sizes, .oldest_wait = oldest_wait, .left = left, .runs = runs});
  }
  [[nodiscard]] std::int64_t Elements(std::size_t requests) const {
    return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(requests), std::int64_t{0});
  }
  // How many of the first fit in a batch.
  [[nodiscard]] std::size_t Fit() const {
    std::size_t fit = sizes.size();
    while (Elements(fit) > settings.max_batch_size) --fit;
    return fit;
  }
  [[nodiscard]] nanoseconds TimeFor(std::size_t request) const { return left[request] - AnswerMargin(left[request]); }
  // None of the first is late because of the others: those that would be late alone do not count.
  [[nodiscard]] bool NoneIsMadeLate(std::size_t requests) const {
    for (std::size_t i = 0; i < requests; ++i) {
      if (TimeFor(i) >= runs[0] && TimeFor(i) < runs[requests - 1]) return false;
    }
    return true;
  }
};

// Requests for a model whose configuration asks for batches, and perhaps for a delay and preferred sizes.
Waiting Any() {
  Waiting waiting{.settings = {.max_batch_size = AnyOf(2, 32), .dynamic = true}};
  const std::int64_t largest = waiting.settings.max_batch_size;
  if (Coin()) {
    waiting.settings.max_queue_delay = std::chrono::microseconds(AnyOf(1, 50'000));
    waiting.oldest_wait = Between(0ns, 2 * nanoseconds(waiting.settings.max_queue_delay));
  }
  for (std::int64_t i = AnyOf(0, 2); i > 0; --i) waiting.settings.preferred_sizes.push_back(AnyOf(1, largest));
  for (std::int64_t i = AnyOf(1, Coin() ? 4 : 20); i > 0; --i) waiting.sizes.push_back(Coin() ? 1 : AnyOf(1, largest));
  return waiting;
}

// Some of them have a deadline, most of these about when their runs end, and some have missed it.
Waiting AnyWithDeadlines() {
  Waiting waiting = Any();
  nanoseconds run = Between(10us, 10ms);
  for (std::size_t i = 0; i < waiting.sizes.size(); ++i, run += Between(0ns, 5ms)) waiting.runs.push_back(run);
  for (std::size_t i = 0; i < waiting.sizes.size(); ++i) {
    waiting.left.push_back(AnyOf(0, 3) == 0 ? nanoseconds::max() : Between(-1ms, 2 * run + 10ms));
  }
  return waiting;
}

Waiting AnyAtAll() {
  Waiting waiting = Coin() ? Any() : AnyWithDeadlines();
  // Nothing is known of its runs yet.
  if (Coin()) waiting.runs.clear();
  return waiting;
}

TEST(BatchPolicyProperties, SameSnapshotSameDecision) {
  const auto holds = rc::check("pure", [] {
    const Waiting waiting = AnyAtAll();
    const BatchDecision first = waiting.Choose();
    (void)AnyAtAll().Choose();
    const BatchDecision second = waiting.Choose();
    RC_ASSERT(first.take == second.take);
    RC_ASSERT(first.wait == second.wait);
  });
  EXPECT_TRUE(holds);
}

TEST(BatchPolicyProperties, WhatIsRunTogetherIsThereAndFits) {
  const auto holds = rc::check("size", [] {
    Waiting waiting = AnyAtAll();
    RC_ASSERT(waiting.Choose().take <= waiting.Fit());
    waiting.settings.dynamic = false;
    RC_ASSERT(waiting.Choose().take == 1u);
    waiting.settings = {.max_batch_size = AnyOf(0, 1), .dynamic = true};
    RC_ASSERT(waiting.Choose().take == 1u);
  });
  EXPECT_TRUE(holds);
}

TEST(BatchPolicyProperties, SomethingIsRunAtOnceOrWhenTheDelayIsOver) {
  const auto holds = rc::check("work-conserving", [] {
    Waiting waiting = AnyAtAll();
    const BatchDecision decision = waiting.Choose();
    if (decision.take == 0) {
      RC_ASSERT(decision.wait > 0ns);
      RC_ASSERT(decision.wait <= waiting.settings.max_queue_delay - waiting.oldest_wait);
    }
    waiting.oldest_wait = waiting.settings.max_queue_delay;
    RC_ASSERT(waiting.Choose().take >= 1u);
  });
  EXPECT_TRUE(holds);
}

TEST(BatchPolicyProperties, NobodyIsMadeLateByThoseItIsRunTogetherWith) {
  const auto holds = rc::check("in time", [] {
    const Waiting waiting = AnyWithDeadlines();
    const std::size_t take = waiting.Choose().take;
    RC_CLASSIFY(take > 1, "several");
    RC_CLASSIFY(take < waiting.Fit(), "fewer than fit");
    RC_ASSERT(take == 0 || waiting.NoneIsMadeLate(take));
  });
  EXPECT_TRUE(holds);
}

TEST(BatchPolicyProperties, AsManyAreRunTogetherAsFitAndAreInTime) {
  const auto holds = rc::check("largest batch", [] {
    Waiting waiting = AnyWithDeadlines();
    waiting.settings.max_queue_delay = {};
    waiting.settings.preferred_sizes.clear();
    const std::size_t take = waiting.Choose().take;
    for (std::size_t more = take + 1; more <= waiting.Fit(); ++more) RC_ASSERT(!waiting.NoneIsMadeLate(more));
    waiting.left.clear();
    RC_ASSERT(waiting.Choose().take == waiting.Fit());
  });
  EXPECT_TRUE(holds);
}

TEST(BatchPolicyProperties, NobodyWaitsForOthersSoLongThatItIsLate) {
  const auto holds = rc::check("the wait", [] {
    Waiting waiting = AnyWithDeadlines();
    // Or hardly any would wait.
    const nanoseconds later = Between(0ns, 200ms);
    for (nanoseconds& left : waiting.left) {
      if (left != nanoseconds::max()) left += later;
    }
    waiting.settings.max_queue_delay = std::chrono::microseconds(AnyOf(1, 50'000));
    waiting.oldest_wait = 0ns;
    if (Coin()) waiting.runs.clear();
    const BatchDecision decision = waiting.Choose();
    RC_CLASSIFY(decision.take == 0, "it waits");
    if (decision.take != 0) return;
    const nanoseconds run = waiting.runs.empty() ? 0ns : waiting.runs.back();
    for (nanoseconds& left : waiting.left) {
      if (left != nanoseconds::max()) left -= decision.wait;
    }
    for (std::size_t i = 0; i < waiting.sizes.size(); ++i) RC_ASSERT(waiting.TimeFor(i) >= run);
  });
  EXPECT_TRUE(holds);
}

TEST(BatchPolicyProperties, WhileTheDelayLastsOnlyFullAndPreferredBatchesAreRun) {
  const auto holds = rc::check("full or preferred", [] {
    Waiting waiting = Any();
    waiting.settings.max_queue_delay += std::chrono::microseconds(1);
    waiting.oldest_wait = Between(0ns, nanoseconds(waiting.settings.max_queue_delay) - 1ns);
    const std::size_t take = waiting.Choose().take;
    const bool full = take == waiting.Fit() &&
                      (take < waiting.sizes.size() || waiting.Elements(take) == waiting.settings.max_batch_size);
    RC_CLASSIFY(take == 0, "it waits");
    RC_ASSERT(take == 0 || full || std::ranges::contains(waiting.settings.preferred_sizes, waiting.Elements(take)));
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
