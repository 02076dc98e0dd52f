#include "memory/lane_layout.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "memory/lane_table.h"

namespace tandem {

void PrintTo(const AddressRange& range, std::ostream* out) {
  *out << range.begin << "-" << range.end;
}

namespace {

using Range = AddressRange;

TEST(LaneLayout, PersistentMemoryGrowsFromOneEndAndLanesFromTheOther) {
  LaneLayout layout(100);
  ASSERT_TRUE(layout.Keep(SessionId{1}, 10));
  ASSERT_TRUE(layout.Keep(SessionId{2}, 5));
  layout.Want(LaneId{1}, 30);
  layout.Want(LaneId{2}, 20);
  EXPECT_EQ(layout.Kept(SessionId{2})[0], (Range{10, 15}));
  EXPECT_EQ(layout.Find(LaneId{1}), (Range{70, 100}));
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{50, 70}));
  EXPECT_EQ(layout.gap(), 35U);
  EXPECT_FALSE(layout.Keep(SessionId{3}, 36));
  EXPECT_TRUE(layout.Keep(SessionId{3}, 35));
}

TEST(LaneLayout, ALaneThatIsClosedLeavesNoHole) {
  LaneLayout layout(100);
  for (std::uint64_t i = 1; i <= 3; ++i) layout.Want(LaneId{i}, 20);
  layout.Close(LaneId{1});
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{80, 100}));
  EXPECT_EQ(layout.Find(LaneId{3}), (Range{60, 80}));
  EXPECT_EQ(layout.gap(), 60U);
}

TEST(LaneLayout, ALaneInTheMiddleOfAnIterationStaysWhereItIs) {
  LaneLayout layout(100);
  for (std::uint64_t i = 1; i <= 3; ++i) layout.Want(LaneId{i}, 20);
  ASSERT_TRUE(layout.Begin(LaneId{2}));
  layout.Close(LaneId{1});
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{60, 80}));
  EXPECT_EQ(layout.Find(LaneId{3}), (Range{40, 60})) << "it would have to pass the other";
  layout.Boundary(LaneId{2});
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{80, 100}));
  EXPECT_EQ(layout.Find(LaneId{3}), (Range{60, 80}));
}

TEST(LaneLayout, ALaneShrinksAtItsBoundary) {
  LaneLayout layout(100);
  layout.Want(LaneId{1}, 60);
  layout.Want(LaneId{2}, 20);
  ASSERT_TRUE(layout.Begin(LaneId{1}));
  layout.Want(LaneId{1}, 30);
  EXPECT_EQ(layout.Find(LaneId{1}), (Range{40, 100}));
  layout.Boundary(LaneId{1});
  EXPECT_EQ(layout.Find(LaneId{1}), (Range{70, 100}));
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{50, 70}));
}

TEST(LaneLayout, ALaneGrowsWhenTheOneBelowHasMadeRoom) {
  LaneLayout layout(100);
  layout.Want(LaneId{1}, 30);
  layout.Want(LaneId{2}, 20);
  ASSERT_TRUE(layout.Begin(LaneId{2}));
  layout.Want(LaneId{1}, 50);
  EXPECT_EQ(layout.Find(LaneId{1}), (Range{70, 100})) << "whoever fits goes on in it";
  layout.Boundary(LaneId{2});
  EXPECT_EQ(layout.Find(LaneId{1}), (Range{50, 100}));
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{30, 50}));
}

TEST(LaneLayout, ALaneThatIsOpenedWaitsUntilOthersHaveSlid) {
  LaneLayout layout(100);
  layout.Want(LaneId{1}, 40);
  layout.Want(LaneId{2}, 40);
  ASSERT_TRUE(layout.Begin(LaneId{2}));
  layout.Close(LaneId{1});
  layout.Want(LaneId{3}, 60);
  EXPECT_EQ(layout.Find(LaneId{3}), std::nullopt);
  EXPECT_FALSE(layout.Begin(LaneId{3}));
  layout.Boundary(LaneId{2});
  EXPECT_EQ(layout.Find(LaneId{3}), (Range{0, 60}));
}

TEST(LaneLayout, ALaneThatIsOpenedDoesNotWaitForOneToShrink) {
  LaneLayout layout(100);
  layout.Want(LaneId{1}, 60);
  ASSERT_TRUE(layout.Begin(LaneId{1}));
  layout.Want(LaneId{1}, 30);
  layout.Want(LaneId{2}, 20);
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{20, 40}));
  layout.Boundary(LaneId{1});
  EXPECT_EQ(layout.Find(LaneId{2}), (Range{50, 70}));
}

TEST(LaneLayout, ALaneThatCannotSlideShrinksWhereItIs) {
  LaneLayout layout(100);
  for (std::uint64_t i = 1; i <= 3; ++i) layout.Want(LaneId{i}, 20);
  ASSERT_TRUE(layout.Begin(LaneId{2}));
  layout.Close(LaneId{1});
  layout.Want(LaneId{3}, 5);
  EXPECT_EQ(layout.Find(LaneId{3}), (Range{55, 60}));
  EXPECT_EQ(layout.gap(), 55U);
}

TEST(LaneLayout, WhatASessionLeftIsFilledByTheNextInPiecesIfNeedBe) {
  LaneLayout layout(100);
  ASSERT_TRUE(layout.Keep(SessionId{1}, 10));
  ASSERT_TRUE(layout.Keep(SessionId{2}, 10));
  ASSERT_TRUE(layout.Keep(SessionId{3}, 10));
  EXPECT_EQ(layout.holes(), 0U);
  layout.Drop(SessionId{1});
  EXPECT_EQ(layout.holes(), 10U);
  ASSERT_TRUE(layout.Keep(SessionId{4}, 15));
  ASSERT_EQ(layout.Kept(SessionId{4}).size(), 2U);
  EXPECT_EQ(layout.Kept(SessionId{4})[0], (Range{0, 10}));
  EXPECT_EQ(layout.Kept(SessionId{4})[1], (Range{30, 35}));
  EXPECT_EQ(layout.holes(), 0U);
  layout.Drop(SessionId{4});
  layout.Drop(SessionId{3});
  EXPECT_EQ(layout.gap(), 80U) << "the end falls back to who is left";
}

TEST(LaneLayout, WhatDoesNotFitIsNeverPlaced) {
  LaneLayout layout(100);
  ASSERT_TRUE(layout.Keep(SessionId{1}, 50));
  layout.Want(LaneId{1}, 51);
  EXPECT_EQ(layout.Find(LaneId{1}), std::nullopt);
  layout.Want(LaneId{2}, ~std::uint64_t{0});
  EXPECT_EQ(layout.Find(LaneId{2}), std::nullopt);
  layout.Want(LaneId{1}, 50);
  EXPECT_EQ(layout.Find(LaneId{1}), (Range{50, 100}));
}

TEST(LaneLayoutDeathTest, RangesThatOverlapEndTheProcessInEveryBuild) {
  AssertApart(std::vector<Range>{{0, 10}, {10, 10}, {20, 100}}, 100);
  EXPECT_DEATH(AssertApart(std::vector<Range>{{0, 10}, {9, 20}}, 100), "memory of lanes overlaps: 9 to 20, above 10");
  EXPECT_DEATH(AssertApart(std::vector<Range>{{0, 101}}, 100), "overlaps");
}

// A table and the layout of what it admits, as a GPU would have them.
class Device {
 public:
  explicit Device(std::uint64_t seed) : random_(seed), table_(kSize), layout_(kSize) {}

  void Step() {
    switch (random_() % 6) {
      case 0: Arrive(); break;
      case 1: End(); break;
      case 2: Correct(); break;
      case 3: BeginOne(); break;
      default:
        if (!table_.lanes().empty()) Boundary(random_() % table_.lanes().size());
    }
    Check();
  }
  // Every lane comes to a boundary once, in any order, the others being in the middle of an iteration.
  void Round() {
    std::vector<LaneId> lanes;
    for (const Lane& lane : table_.lanes()) lanes.push_back(lane.id);
    std::ranges::shuffle(lanes, random_);
    for (const LaneId lane : lanes) {
      BeginAll();
      const auto at = std::ranges::find(table_.lanes(), lane, &Lane::id) - table_.lanes().begin();
      Boundary(static_cast<std::size_t>(at));
      Check();
    }
  }
  [[nodiscard]] std::size_t lanes() const { return table_.lanes().size(); }
  void CheckPacked() const {
    std::uint64_t end = kSize;
    for (const Lane& lane : table_.lanes()) {
      RC_ASSERT(lane.length == lane.next);
      RC_ASSERT(layout_.Find(lane.id) == (std::optional<Range>{{end - lane.next, end}}));
      end -= lane.next;
    }
    RC_ASSERT(unplaced_.empty());
    RC_ASSERT(layout_.gap() == kSize - table_.use().total() - layout_.holes());
  }
  void BoundaryOfAll() {
    for (std::size_t i = 0; i < table_.lanes().size(); ++i) Boundary(i);
    Check();
  }

 private:
  static constexpr std::uint64_t kSize = 1000;

  void Arrive() {
    const SessionNeed need{.persistent = random_() % 100, .ephemeral = random_() % 400};
    const LaneAnswer answer = table_.FindLane(need);
    if (answer.fit == LaneFit::kQueue) return;
    const SessionId id{++came_};
    RC_ASSERT(table_.Admit(id, need, answer).has_value());
    unplaced_[id] = need.persistent;
    sessions_.push_back(id);
    Follow();
  }
  void End() {
    if (sessions_.empty()) return;
    const auto gone = sessions_.begin() + static_cast<std::ptrdiff_t>(random_() % sessions_.size());
    const LaneId lane = table_.Find(*gone)->lane;
    RC_ASSERT(table_.Leave(*gone).has_value());
    layout_.Drop(*gone);
    unplaced_.erase(*gone);
    sessions_.erase(gone);
    if (std::ranges::find(table_.lanes(), lane, &Lane::id) == table_.lanes().end()) {
      layout_.Close(lane);
      busy_.erase(lane);
    }
    Follow();
  }
  void Correct() {
    if (sessions_.empty()) return;
    const SessionId id = sessions_[random_() % sessions_.size()];
    SessionNeed need = table_.Find(id)->need;
    need.ephemeral = random_() % 400;
    (void)table_.Correct(id, need);
    Follow();
  }
  void BeginOne() {
    if (!table_.lanes().empty()) Begin(table_.lanes()[random_() % table_.lanes().size()].id);
  }
  void BeginAll() {
    for (const Lane& lane : table_.lanes()) Begin(lane.id);
  }
  void Begin(LaneId lane) {
    if (layout_.Begin(lane)) busy_[lane] = *layout_.Find(lane);
  }
  void Boundary(std::size_t at) {
    const LaneId lane = table_.lanes()[at].id;
    busy_.erase(lane);
    layout_.Boundary(lane);
    Follow();
  }
  // What the table says is wanted of the layout, and what the layout could do is told to the table.
  void Follow() {
    table_.SetBudget(kSize - layout_.holes());
    for (const Lane& lane : table_.lanes()) layout_.Want(lane.id, lane.next);
    for (std::size_t i = 0; i < table_.lanes().size(); ++i) {
      const Lane& lane = table_.lanes()[i];
      const auto place = layout_.Find(lane.id);
      if (!busy_.contains(lane.id) && place && place->size() == lane.next)
        RC_ASSERT(table_.Boundary(lane.id).has_value());
    }
    std::erase_if(unplaced_, [this](const auto& one) { return layout_.Keep(one.first, one.second); });
    table_.SetBudget(kSize - layout_.holes());
    RC_ASSERT(table_.overhang() == 0U);
  }
  void Check() const {
    for (const auto& [lane, range] : busy_) RC_ASSERT(layout_.Find(lane) == range);
    std::vector<Range> all;
    for (const Lane& lane : table_.lanes()) {
      if (const auto range = layout_.Find(lane.id)) all.push_back(*range);
    }
    for (const SessionId id : sessions_) all.insert(all.end(), layout_.Kept(id).begin(), layout_.Kept(id).end());
    std::erase_if(all, [](const Range& range) { return range.size() == 0; });
    std::ranges::sort(all, {}, &Range::begin);
    for (std::size_t i = 1; i < all.size(); ++i) RC_ASSERT(all[i - 1].end <= all[i].begin);
    if (!all.empty()) RC_ASSERT(all.back().end <= kSize);
  }

  std::mt19937_64 random_;
  LaneTable table_;
  LaneLayout layout_;
  std::vector<SessionId> sessions_;
  std::map<SessionId, std::uint64_t> unplaced_;  // Persistent bytes that have no room yet.
  std::map<LaneId, Range> busy_;                 // Where a lane was when its iteration began.
  std::uint64_t came_ = 0;
};

TEST(LaneLayout, NoRangesOverlapAndNoLaneMovesInTheMiddleOfAnIteration) {
  const auto holds = rc::check("any mix", [](std::uint64_t seed) {
    Device device(seed);
    for (int i = 0; i < 1000; ++i) device.Step();
    device.BoundaryOfAll();
    device.CheckPacked();
  });
  EXPECT_TRUE(holds);
}

TEST(LaneLayout, WhateverTheTableAdmitsHasRoomWhenEveryLaneHasComeToBoundaries) {
  const auto holds = rc::check("boundaries one by one", [](std::uint64_t seed) {
    Device device(seed);
    for (int i = 0; i < 300; ++i) device.Step();
    const std::size_t rounds = device.lanes() + 1;
    for (std::size_t i = 0; i < rounds; ++i) device.Round();
    device.CheckPacked();
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
