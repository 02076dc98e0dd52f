#include "memory/memory_book.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "memory/lane_outlook.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

DeviceBudget Budget(std::uint64_t bytes) {
  return BudgetOf({.bytes = bytes}, {.device = 1024 * kMiB});
}

SessionNeed Needs(std::uint64_t persistent, std::uint64_t ephemeral) {
  return {.persistent = persistent * kMiB, .ephemeral = ephemeral * kMiB};
}

const MemorySession* Find(const MemoryMap& map, SessionId id) {
  const auto found = std::ranges::find(map.sessions, id, &MemorySession::id);
  return found == map.sessions.end() ? nullptr : &*found;
}

class MemoryBookTest : public ::testing::Test {
 protected:
  SessionId Begin(const std::string& name, const SessionNeed& need) {
    const SessionId id = book_.Ask(name, need, 0);
    EXPECT_EQ(book_.AdmitNext(), id);
    return id;
  }

  [[nodiscard]] std::string Why(SessionId id) const { return book_.WhyWaiting(id, MemoryBook::Detail::kWhoseEnd); }

  MemoryBook book_{Budget(1000 * kMiB), 2};
};

TEST_F(MemoryBookTest, RunsOfModelsShareALaneForEachWorker) {
  const SessionId small = book_.Count(MemoryKind::kModel, "a version 1", Needs(10, 20));
  const SessionId large = book_.Count(MemoryKind::kModel, "b version 1", Needs(30, 50));
  const MemoryMap map = book_.Map();
  EXPECT_EQ(map.use, (LaneUse{.persistent = 40 * kMiB, .lanes = 100 * kMiB}));
  EXPECT_EQ(Find(map, small)->lane, Find(map, large)->lane);
  ASSERT_EQ(map.lanes.size(), 2U);
  for (const Lane& lane : map.lanes) EXPECT_EQ(lane.length, 50 * kMiB);
  EXPECT_EQ(map.Persistent(MemoryKind::kModel), 40 * kMiB);

  book_.Leave(large);
  EXPECT_EQ(book_.Map().use, (LaneUse{.persistent = 10 * kMiB, .lanes = 40 * kMiB}));
  book_.Leave(small);
  EXPECT_EQ(book_.Map().use, LaneUse{});
  EXPECT_TRUE(book_.Map().sessions.empty());
}

TEST_F(MemoryBookTest, JobsShareALaneWhereThereIsNoRoomForAnother) {
  book_.Count(MemoryKind::kModel, "m version 1", Needs(0, 10));
  const SessionId one = Begin("job 1", Needs(100, 300));
  const SessionId two = Begin("job 2", Needs(100, 300));
  EXPECT_NE(Find(book_.Map(), one)->lane, Find(book_.Map(), two)->lane);
  SessionNeed bounded = Needs(10, 300);
  bounded.alone = true;
  const SessionId waits = book_.Ask("job 3", bounded, 0);
  EXPECT_FALSE(book_.AdmitNext()) << "what is bounded as a whole has its own: there are 180 left for its E, not 300";
  book_.Leave(waits);
  const SessionId three = Begin("job 4", Needs(10, 300));
  EXPECT_EQ(Find(book_.Map(), three)->lane, Find(book_.Map(), one)->lane);
  const auto place = book_.PlaceOf(three);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->length, 300 * kMiB);
  EXPECT_EQ(place->sessions, 2U);
  const SessionId four = Begin("job 5", Needs(10, 5));
  EXPECT_EQ(book_.PlaceOf(four)->sessions, 1U) << "nor with runs of models, whose lane would be long enough";

  EXPECT_EQ(book_.Grow(three, 350 * kMiB), 350 * kMiB);
  EXPECT_EQ(book_.Grow(three, 900 * kMiB), 350 * kMiB) << "there is no room";
  book_.Recount(three, Needs(10, 900));
  EXPECT_EQ(book_.Map().overhang, 0U) << "what it is to need in a lane that others have, too, it does not have yet";
}

TEST_F(MemoryBookTest, WhatAJobWasGivenInItsLaneIsNotTakenAwayByWhatIsExpectedOfIt) {
  book_.Count(MemoryKind::kServer, "reserve", Needs(100, 0));
  const SessionId one = Begin("job 1", Needs(100, 300));
  const SessionId two = Begin("job 2", Needs(100, 300));
  ASSERT_EQ(book_.PlaceOf(two)->sessions, 1U);
  const SessionId three = Begin("job 3", Needs(90, 50));
  ASSERT_EQ(book_.PlaceOf(three)->lane, book_.PlaceOf(one)->lane);
  book_.Leave(two);
  EXPECT_EQ(book_.Grow(three, 350 * kMiB), 350 * kMiB);
  book_.Recount(three, Needs(95, 50));
  EXPECT_EQ(book_.PlaceOf(three)->length, 350 * kMiB);
  EXPECT_EQ(Find(book_.Map(), three)->need.persistent, 95 * kMiB);
  EXPECT_EQ(Find(book_.Map(), three)->need.ephemeral, 350 * kMiB);
}

TEST_F(MemoryBookTest, WhatAJobHoldsOutsideOfALaneThatItSharesIsCountedWhateverTheRoom) {
  const SessionId one = Begin("job 1", Needs(300, 500));
  const SessionId two = Begin("job 2", Needs(100, 400));
  ASSERT_EQ(book_.PlaceOf(one)->lane, book_.PlaceOf(two)->lane);
  book_.Recount(two, Needs(350, 700));
  EXPECT_EQ(Find(book_.Map(), two)->need.persistent, 350 * kMiB);
  EXPECT_EQ(Find(book_.Map(), two)->need.ephemeral, 400 * kMiB) << "what it is to need there it does not have yet";
  EXPECT_EQ(book_.Map().overhang, 150 * kMiB);
}

TEST_F(MemoryBookTest, AJobThatExpectsMoreThanThereIsNowIsToWait) {
  Begin("job 1", Needs(100, 300));
  const SessionId two = Begin("job 2", Needs(10, 10));
  EXPECT_TRUE(book_.Expect(two, Needs(100, 200)));
  const LaneUse before = book_.Map().use;
  EXPECT_FALSE(book_.Expect(two, Needs(100, 700))) << "it would fit into the lane of the other, or when that has ended";
  EXPECT_EQ(book_.Map().use, before);
  EXPECT_TRUE(book_.Expect(two, Needs(100, 5000))) << "it never fits: nobody gains anything if it waits";
  EXPECT_GT(book_.Map().overhang, 0U);
}

TEST_F(MemoryBookTest, AJobThatWaitsSaysWhyAndBeginsWhenSomebodyLeaves) {
  const SessionId first = Begin("job 4", Needs(500, 100));
  const SessionId second = book_.Ask("job 5", Needs(450, 50), 0);
  EXPECT_FALSE(book_.AdmitNext());
  EXPECT_EQ(Why(second), "waits for memory: needs P 450.0 MiB + E 50.0 MiB; free 400.0 MiB; would fit when job 4 ends");
  EXPECT_EQ(book_.WhyWaiting(second, MemoryBook::Detail::kNumbers),
            "waits for memory: needs P 450.0 MiB + E 50.0 MiB; free 400.0 MiB");
  ASSERT_EQ(book_.Map().waiting.size(), 1U);
  EXPECT_EQ(book_.Map().waiting[0].reason, Why(second));
  book_.Leave(first);
  EXPECT_EQ(book_.AdmitNext(), second);
  EXPECT_EQ(Why(second), "");
}

TEST_F(MemoryBookTest, AModelIsCountedWhetherThereIsRoomOrNot) {
  const SessionId job = Begin("job 1", Needs(300, 300));
  const SessionId model = book_.Count(MemoryKind::kModel, "m version 1", Needs(500, 100));
  MemoryMap map = book_.Map();
  EXPECT_EQ(map.overhang, 300 * kMiB);
  EXPECT_EQ(map.headroom(), 0U);
  const SessionId other = book_.Ask("job 2", Needs(0, 0), 0);
  EXPECT_FALSE(book_.AdmitNext()) << "not even who needs nothing";
  EXPECT_THAT(Why(other), HasSubstr("300.0 MiB too much in use; would fit when job 1 ends"));
  book_.Leave(job);
  EXPECT_EQ(book_.AdmitNext(), other);
  EXPECT_EQ(book_.Map().overhang, 0U);
  EXPECT_NE(Find(book_.Map(), model), nullptr);
}

TEST_F(MemoryBookTest, ABudgetThatFallsShowsWhatIsTooMuchAndAdmitsNobody) {
  const SessionId job = Begin("job 1", Needs(300, 300));
  book_.SetBudget(Budget(400 * kMiB));
  EXPECT_EQ(book_.Map().overhang, 200 * kMiB);
  const SessionId other = book_.Ask("job 2", Needs(1, 1), 0);
  EXPECT_FALSE(book_.AdmitNext());
  book_.SetBudget(Budget(1000 * kMiB));
  EXPECT_EQ(book_.AdmitNext(), other);
  book_.Leave(job);
}

TEST_F(MemoryBookTest, AJobThatTurnsOutLargerIsCountedAsWhatItIs) {
  const SessionId job = Begin("job 1", Needs(100, 100));
  book_.Recount(job, Needs(100, 1100));
  EXPECT_EQ(book_.Map().overhang, 200 * kMiB);
  book_.Recount(job, Needs(100, 200));
  EXPECT_EQ(book_.Map().overhang, 0U);
  EXPECT_EQ(book_.Map().free, 700 * kMiB);
  book_.Measure(job, 250 * kMiB);
  EXPECT_EQ(Find(book_.Map(), job)->measured, 250 * kMiB);
}

TEST_F(MemoryBookTest, WhatCanNeverFitIsRefusedWithTheNumbers) {
  book_.Count(MemoryKind::kServer, "reserve", Needs(300, 0));
  book_.Count(MemoryKind::kModel, "m version 1", Needs(600, 1));
  EXPECT_TRUE(book_.CheckEverFits(Needs(200, 500))) << "once the model is unloaded";
  const Status refused = book_.CheckEverFits(Needs(200, 501));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  for (const char* const part : {"P 200.0 MiB + E 501.0 MiB", "budget of 1000.0 MiB", "needs 300.0 MiB", "700.0 MiB"}) {
    EXPECT_THAT(refused.error().message, HasSubstr(part));
  }
  const SessionId job = book_.Ask("job 1", Needs(200, 500), 0);
  EXPECT_FALSE(book_.AdmitNext());
  EXPECT_THAT(Why(job), HasSubstr("would fit with fewer models loaded"));
  book_.Recount(job, Needs(200, 501));
  EXPECT_THAT(Why(job), HasSubstr("leaves no room for it at all"));
}

TEST_F(MemoryBookTest, ManyThatAreInTheWayAreNotAllNamed) {
  for (int i = 1; i <= 8; ++i) Begin("job " + std::to_string(i), Needs(100, 0));
  const SessionId large = book_.Ask("job 9", Needs(1000, 0), 0);
  EXPECT_THAT(Why(large), HasSubstr("and 4 more end"));
}

TEST_F(MemoryBookTest, AfterAsManyAsMayOvertakeMemoryIsKept) {
  const SessionId first = Begin("job 1", Needs(500, 0));
  const SessionId large = book_.Ask("large", Needs(900, 0), 0);
  for (int i = 0; i < LaneQueue::kMostOvertaken; ++i) book_.Leave(Begin("small", Needs(10, 0)));
  const SessionId late = book_.Ask("late", Needs(10, 0), 0);
  EXPECT_FALSE(book_.AdmitNext());
  EXPECT_THAT(Why(late), HasSubstr("are kept for large, which has waited longer"));
  EXPECT_EQ(book_.Map().kept_for, large);
  EXPECT_EQ(book_.Map().headroom(), 0U);
  book_.Leave(first);
  EXPECT_EQ(book_.AdmitNext(), large);
  EXPECT_EQ(book_.AdmitNext(), late);
}

TEST_F(MemoryBookTest, WhoHasLeftIsNobody) {
  const SessionId job = Begin("job 1", Needs(1, 1));
  book_.Leave(job);
  book_.Leave(job);
  book_.Recount(job, Needs(5, 5));
  book_.Measure(job, 5);
  EXPECT_EQ(book_.Map().use, LaneUse{});
}

// Any mix of loads, unloads, submissions, ends, corrections and limits.
class AnyMix {
 public:
  explicit AnyMix(std::uint64_t seed)
      : random_(seed), workers_(static_cast<int>(1 + random_() % 4)), book_(Budget(1000 * kMiB), workers_) {
    book_.Count(MemoryKind::kServer, "front ends", Needs(50, 0));
  }

  void Step() {
    switch (random_() % 10) {
      case 0: Load(); break;
      case 1: Drop(models_); break;
      case 2:
      case 3:
      case 4: Submit(); break;
      case 5:
      case 6: Drop(jobs_); break;
      case 7: Correct(); break;
      case 8: Cancel(); break;
      default: book_.SetBudget(Budget((200 + random_() % 800) * kMiB));
    }
    Admit();
    Check();
  }

  // Everything ends and the budget is as it was: then whoever can ever fit has begun.
  void Drain() {
    while (!models_.empty()) Drop(models_);
    book_.SetBudget(Budget(1000 * kMiB));
    Admit();
    while (!jobs_.empty()) {
      Drop(jobs_);
      Admit();
      Check();
    }
    for (const LaneQueue::Waiting& one : book_.queue().waiting()) RC_ASSERT(!book_.CheckEverFits(one.need));
    RC_ASSERT(book_.table().use() == (LaneUse{.persistent = 50 * kMiB}));
  }

 private:
  static constexpr std::size_t kMostWaiting = 30;

  SessionNeed AnyNeed() {
    if (random_() % 40 == 0) return {.persistent = random_(), .ephemeral = random_()};
    return Needs(random_() % 200, random_() % 400);
  }
  void Load() {
    if (models_.size() < 20) models_[book_.Count(MemoryKind::kModel, "m", Needs(random_() % 60, random_() % 40))] = {};
  }
  void Submit() {
    if (waiting_.size() >= kMostWaiting) return;
    const SessionNeed need = AnyNeed();
    waiting_[book_.Ask("j", need, static_cast<std::int64_t>(random_() % 3))] = 0;
  }
  template <typename Map>
  void Drop(Map& sessions) {
    if (sessions.empty()) return;
    const auto one = std::next(sessions.begin(), static_cast<std::ptrdiff_t>(random_() % sessions.size()));
    book_.Leave(one->first);
    sessions.erase(one);
  }
  void Cancel() { Drop(waiting_); }
  void Correct() {
    auto& sessions = random_() % 2 == 0 ? jobs_ : models_;
    if (sessions.empty()) return;
    const auto one = std::next(sessions.begin(), static_cast<std::ptrdiff_t>(random_() % sessions.size()));
    book_.Recount(one->first, Needs(random_() % 200, random_() % 400));
  }
  void Admit() {
    for (;;) {
      const LaneTable before = book_.table();
      const std::vector<LaneQueue::Waiting> waiting(book_.queue().waiting().begin(), book_.queue().waiting().end());
      const auto admitted = book_.AdmitNext();
      if (!admitted) break;
      RC_ASSERT(before.overhang() == 0U);
      RC_ASSERT(book_.table().overhang() == 0U);
      // Nobody who would have fitted in the end is overtaken without end.
      const LaneTable later = OnceOthersEnd(before);
      for (const LaneQueue::Waiting& one : waiting) {
        if (one.session == *admitted) break;
        if (later.FindLane(one.need).fit == LaneFit::kQueue) continue;
        RC_ASSERT(++waiting_[one.session] <= LaneQueue::kMostOvertaken);
      }
      waiting_.erase(*admitted);
      jobs_[*admitted] = {};
    }
    if (book_.queue().ReservedFor(book_.table())) return;
    for (const LaneQueue::Waiting& one : book_.queue().waiting()) {
      RC_ASSERT(book_.table().FindLane(one.need).fit == LaneFit::kQueue);
    }
  }
  void Check() {
    const MemoryMap map = book_.Map();
    RC_ASSERT(CheckSafe(book_.table().lanes(), ~std::uint64_t{0}).value() == map.use);
    RC_ASSERT(map.budget.bytes + map.overhang == map.use.total() + map.free);
    RC_ASSERT(map.overhang == 0U || map.free == 0U);
    std::uint64_t longest = 0;
    std::size_t run_lanes = 0;
    std::size_t jobs = 0;
    for (const MemorySession& session : map.sessions) {
      if (session.kind == MemoryKind::kModel) longest = std::max(longest, session.need.ephemeral);
      if (session.kind == MemoryKind::kRuns) ++run_lanes;
      if (session.kind == MemoryKind::kJob) ++jobs;
    }
    RC_ASSERT(jobs == jobs_.size());
    RC_ASSERT(run_lanes == (longest > 0 ? static_cast<std::size_t>(workers_ - 1) : 0U));
    for (const MemorySession& session : map.sessions) {
      if (session.kind == MemoryKind::kRuns) RC_ASSERT(session.need.ephemeral == longest);
    }
    RC_ASSERT(map.waiting.size() == waiting_.size());
    for (const WaitingSession& one : map.waiting) {
      RC_ASSERT(!one.reason.empty());
      RC_ASSERT(waiting_.contains(one.session.id));
    }
  }

  std::mt19937_64 random_;
  const int workers_;
  MemoryBook book_;
  std::map<SessionId, int> models_;
  std::map<SessionId, int> jobs_;
  std::map<SessionId, int> waiting_;  // How often it was overtaken.
};

TEST(MemoryBook, StaysSafeAndStarvesNobodyWhateverComes) {
  const auto holds = rc::check("any mix", [](std::uint64_t seed) {
    AnyMix mix(seed);
    for (int i = 0; i < 600; ++i) mix.Step();
    mix.Drain();
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
