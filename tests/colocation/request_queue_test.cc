#include "colocation/request_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::MakeServable;

constexpr MonotonicTime kNow{std::chrono::hours(1)};

class RequestQueueTest : public ::testing::Test {
 protected:
  QueueKey Push(const std::shared_ptr<Servable>& servable, std::uint64_t priority = 9,
                std::optional<std::chrono::nanoseconds> deadline_in = {}) {
    const QueueKey key{.priority = priority,
                       .deadline = deadline_in ? kNow + *deadline_in : MonotonicTime::max(),
                       .sequence = next_++};
    RequestQueue::Entry entry;
    entry.item.servable = servable;
    entry.item.batch = static_cast<std::int64_t>(key.sequence);  // To know it again.
    queue_.Push(key, std::move(entry));
    return key;
  }
  std::vector<std::int64_t> Expired(MonotonicTime now) {
    std::vector<RequestQueue::Entry> entries;
    queue_.TakeExpired(now, entries);
    std::vector<std::int64_t> names;
    for (const auto& entry : entries) names.push_back(entry.item.batch);
    return names;
  }

  std::uint64_t next_ = 0;
  RequestQueue queue_;
  const std::shared_ptr<Servable> a_ = MakeServable("a", {});
  const std::shared_ptr<Servable> b_ = MakeServable("b", {});
};

TEST_F(RequestQueueTest, OrdersByPriorityThenDeadlineThenArrival) {
  Push(a_);
  Push(a_, 9, 5ms);
  Push(a_, 9, 1ms);
  Push(a_, 1);
  std::vector<std::int64_t> order;
  for (const auto& [key, entry] : queue_.Waiting(*a_)) order.push_back(entry.item.batch);
  EXPECT_THAT(order, ElementsAre(3, 2, 1, 0));
}

TEST_F(RequestQueueTest, ServablesStandInTheOrderOfTheirMostUrgentRequests) {
  Push(a_, 9);
  Push(b_, 5);
  EXPECT_THAT(queue_.ByUrgency(), ElementsAre(b_.get(), a_.get()));
  Push(a_, 1);
  EXPECT_THAT(queue_.ByUrgency(), ElementsAre(a_.get(), b_.get()));
}

TEST_F(RequestQueueTest, CountsAllAndThoseOfOneServable) {
  const QueueKey key = Push(a_);
  Push(a_);
  Push(b_);
  EXPECT_EQ(queue_.size(), 3u);
  EXPECT_EQ(queue_.size(*a_), 2u);
  EXPECT_TRUE(queue_.Take(*a_, key));
  EXPECT_FALSE(queue_.Take(*a_, key));
  EXPECT_FALSE(queue_.Take(*b_, key));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.TakeAll().size(), 2u);
  EXPECT_EQ(queue_.size(), 0u);
  EXPECT_TRUE(queue_.ByUrgency().empty());
}

TEST_F(RequestQueueTest, FindsTheExpiredWhereverTheyStand) {
  Push(a_, 1);
  Push(a_, 9, 2ms);
  Push(b_, 9, 1ms);
  Push(b_, 9, 3ms);
  EXPECT_EQ(queue_.EarliestDeadline(), kNow + 1ms);
  EXPECT_TRUE(Expired(kNow + 1ms).empty()) << "its time is not over yet";
  EXPECT_THAT(Expired(kNow + 2ms + 1ns), ElementsAre(2, 1));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(queue_.EarliestDeadline(), kNow + 3ms);
}

TEST_F(RequestQueueTest, WhatWasTakenDoesNotExpire) {
  const QueueKey key = Push(a_, 9, 1ms);
  EXPECT_TRUE(queue_.Take(*a_, key));
  EXPECT_EQ(queue_.EarliestDeadline(), MonotonicTime::max());
  Push(a_, 9, 2ms);
  EXPECT_THAT(Expired(kNow + 1h), ElementsAre(1));
}

TEST_F(RequestQueueTest, FindsTheExpiredAfterManyWereTakenInTime) {
  Push(b_, 9, 1ms);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(queue_.Take(*a_, Push(a_, 9, 1h)));
  Push(a_, 9, 2ms);
  EXPECT_THAT(Expired(kNow + 30min), ElementsAre(0, 1001));
}

}  // namespace
}  // namespace tandem
