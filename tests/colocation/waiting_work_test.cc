#include "colocation/waiting_work.h"

#include <map>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(WaitingWork, TellsWhatStandsBeforeAKey) {
  WaitingWork work;
  EXPECT_EQ(work.Before({.priority = 9}), (WorkAmount{}));
  work.Add({.priority = 1, .sequence = 5}, 4);
  work.Add({.priority = 2, .deadline = MonotonicTime(1s), .sequence = 6}, 2);
  work.Add({.priority = 2, .sequence = 1}, 1);
  EXPECT_EQ(work.Before({.priority = 1, .sequence = 5}), (WorkAmount{}));
  EXPECT_EQ(work.Before({.priority = 2}), (WorkAmount{.requests = 2, .elements = 6})) << "no deadline is the latest";
  work.Remove({.priority = 1, .sequence = 5});
  EXPECT_EQ(work.Before({.priority = 3}), (WorkAmount{.requests = 2, .elements = 3}));
}

TEST(WaitingWork, AgreesWithAWalkThroughAllOfItWhateverComesAndGoes) {
  const auto holds = rc::check("sums", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    WaitingWork work;
    std::map<QueueKey, std::int64_t> all;
    for (std::uint64_t i = 0; i < 1500; ++i) {
      const QueueKey key{
          .priority = random() % 3, .deadline = MonotonicTime(std::chrono::seconds(random() % 50)), .sequence = i};
      if (all.empty() || random() % 4 != 0) {
        const auto elements = static_cast<std::int64_t>(1 + random() % 8);
        work.Add(key, elements);
        all.emplace(key, elements);
      } else {
        const auto gone = std::next(all.begin(), static_cast<std::ptrdiff_t>(random() % all.size()));
        work.Remove(gone->first);
        all.erase(gone);
      }
      if (i % 10 != 0) continue;
      WorkAmount before;
      for (const auto& [other, elements] : all) {
        if (other >= key) break;
        ++before.requests;
        before.elements += elements;
      }
      RC_ASSERT(work.Before(key) == before);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
