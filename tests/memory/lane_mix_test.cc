// Any mix of arrivals, ends, corrections, boundaries and budgets, on table and queue together.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "memory/lane_outlook.h"
#include "memory/lane_queue.h"
#include "memory/lane_table.h"

namespace tandem {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// FindLane once more, from its four rules, with numbers that cannot overflow.
LaneFit FitByTheRules(const LaneTable& table, std::size_t max_lanes, const SessionNeed& need) {
  Wide sum = need.persistent;
  bool any_long_enough = false;
  std::uint64_t longest = 0;
  for (const Lane& lane : table.lanes()) {
    sum += lane.counted();
    for (const LaneSession& session : lane.sessions) sum += session.need.persistent;
    any_long_enough |= lane.counted() >= need.ephemeral;
    longest = std::max(longest, lane.counted());
  }
  const std::size_t lanes = table.lanes().size();
  if (lanes < max_lanes && sum + need.ephemeral <= table.budget()) return LaneFit::kNew;
  if (any_long_enough && sum <= table.budget()) return LaneFit::kReuse;
  if (!any_long_enough && lanes > 0 && sum + (need.ephemeral - longest) <= table.budget()) return LaneFit::kResize;
  return LaneFit::kQueue;
}

class Mix {
 public:
  explicit Mix(std::uint64_t seed)
      : random_(seed),
        unit_(kUnits[random_() % std::size(kUnits)]),
        max_lanes_(random_() % 4 == 0 ? 1 + random_() % 3 : LaneTable::kAnyLanes),
        ranked_(random_() % 2 == 0),
        table_(100 * unit_, max_lanes_) {}

  void Step() {
    struct Kind {
      std::uint64_t weight;
      void (Mix::*happen)();
    };
    static constexpr Kind kKinds[] = {{28, &Mix::Arrive},   {24, &Mix::End},     {2, &Mix::Cancel},
                                      {26, &Mix::Boundary}, {12, &Mix::Correct}, {3, &Mix::CorrectWaiting},
                                      {5, &Mix::SetBudget}};
    std::uint64_t at = random_() % 100;
    for (const Kind& kind : kKinds) {
      if (at < kind.weight) {
        (this->*kind.happen)();
        break;
      }
      at -= kind.weight;
    }
    AdmitAll();
    Check();
  }

  // Nobody comes any more, and everybody ends.
  void Drain() {
    for (auto& [id, need] : admitted_) {
      need.stays = false;
      RC_ASSERT(table_.Correct(id, need).has_value());
    }
    while (!admitted_.empty()) {
      Boundary();
      End();
      AdmitAll();
      Check();
    }
    for (const LaneQueue::Waiting& one : queue_.waiting()) RC_ASSERT(!table_.FindLane(one.need).possible);
    RC_ASSERT(table_.use() == LaneUse{});
    RC_ASSERT(table_.lanes().empty());
    RC_ASSERT(came_ == gone_ + queue_.waiting().size());
  }

 private:
  static constexpr std::uint64_t kUnits[] = {1, 1 << 20, kMost / 100};
  static constexpr std::size_t kMostWaiting = 40;

  std::uint64_t Units(std::uint64_t below) {
    const std::uint64_t whole = random_() % below * unit_;
    return unit_ > 1 && random_() % 2 == 0 ? whole + random_() % unit_ : whole;
  }
  SessionNeed AnyNeed() {
    if (random_() % 50 == 0) return {.persistent = random_(), .ephemeral = random_()};
    return {.persistent = Units(15), .ephemeral = Units(60), .stays = random_() % 20 == 0};
  }
  // nullopt: there is none.
  template <typename Map>
  std::optional<SessionId> AnyOf(const Map& sessions) {
    if (sessions.empty()) return std::nullopt;
    return std::next(sessions.begin(), static_cast<std::ptrdiff_t>(random_() % sessions.size()))->first;
  }

  void Arrive() {
    if (waiting_.size() >= kMostWaiting) return;
    const SessionId id{++came_};
    const SessionNeed need = AnyNeed();
    RC_ASSERT(table_.FindLane(need).fit == FitByTheRules(table_, max_lanes_, need));
    RC_ASSERT(queue_.Add(id, need, ranked_ ? static_cast<std::int64_t>(random_() % 5) : 0).has_value());
    waiting_[id] = need;
  }
  void End() {
    const auto id = AnyOf(admitted_);
    if (!id) return;
    RC_ASSERT(table_.Leave(*id).has_value());
    admitted_.erase(*id);
    ++gone_;
  }
  void Cancel() {
    const auto id = AnyOf(waiting_);
    if (!id) return;
    RC_ASSERT(queue_.Remove(*id).has_value());
    waiting_.erase(*id);
    overtaken_.erase(*id);
    ++gone_;
  }
  void Boundary() {
    if (table_.lanes().empty()) return;
    const LaneId lane = table_.lanes()[random_() % table_.lanes().size()].id;
    RC_ASSERT(table_.Boundary(lane).has_value());
    const Lane& now = *std::ranges::find(table_.lanes(), lane, &Lane::id);
    for (const LaneSession& session : now.sessions) RC_ASSERT(table_.Find(session.id)->fits);
  }
  void Correct() {
    const auto id = AnyOf(admitted_);
    if (!id) return;
    SessionNeed need = AnyNeed();
    if (random_() % 2 == 0) need.persistent = admitted_[*id].persistent;
    const LaneTable before = table_;
    if (table_.Correct(*id, need)) {
      admitted_[*id] = need;
      RC_ASSERT(table_.use().total() <= std::max(table_.budget(), before.use().total()));
    } else {
      RC_ASSERT(table_ == before);
    }
  }
  void CorrectWaiting() {
    const auto id = AnyOf(waiting_);
    if (!id) return;
    waiting_[*id] = AnyNeed();
    RC_ASSERT(queue_.Correct(*id, waiting_[*id]).has_value());
  }
  void SetBudget() {
    table_.SetBudget(random_() % 10 == 0 ? random_() : Units(100));
    last_total_ = table_.use().total();
  }

  void AdmitAll() {
    while (const auto turn = queue_.Next(table_)) {
      RC_ASSERT(table_.overhang() == 0U);
      // Who came before, and would have fitted in the end, was overtaken.
      const LaneTable later = OnceOthersEnd(table_);
      for (const auto& [id, need] : waiting_) {
        if (id == turn->session) break;
        if (later.FindLane(need).fit == LaneFit::kQueue) continue;
        RC_ASSERT(++overtaken_[id] <= LaneQueue::kMostOvertaken);
      }
      const auto lane = table_.Admit(turn->session, turn->need, turn->answer);
      RC_ASSERT(lane.has_value());
      RC_ASSERT(turn->answer.fit == LaneFit::kNew || *lane == turn->answer.lane);
      RC_ASSERT(queue_.Take(turn->session).has_value());
      admitted_[turn->session] = turn->need;
      waiting_.erase(turn->session);
      overtaken_.erase(turn->session);
    }
    // Memory is left idle only for somebody.
    if (queue_.ReservedFor(table_)) return;
    for (const auto& [id, need] : waiting_) RC_ASSERT(table_.FindLane(need).fit == LaneFit::kQueue);
  }

  void Check() {
    Wide sum = 0;
    std::map<SessionId, SessionNeed> found;
    for (const Lane& lane : table_.lanes()) {
      sum += std::max(lane.length, lane.next);
      std::uint64_t largest = 0;
      for (const auto& [id, need] : lane.sessions) {
        RC_ASSERT(found.emplace(id, need).second);
        RC_ASSERT(table_.Find(id)->fits == (need.ephemeral <= lane.length));
        sum += need.persistent;
        largest = std::max(largest, need.ephemeral);
      }
      RC_ASSERT(lane.next == largest);
    }
    RC_ASSERT(table_.lanes().size() <= max_lanes_);
    RC_ASSERT(sum <= std::max(table_.budget(), last_total_));
    RC_ASSERT(sum == table_.use().total());
    last_total_ = table_.use().total();
    // Everybody is in exactly one place.
    RC_ASSERT(found == admitted_);
    RC_ASSERT(std::ranges::equal(queue_.waiting(), waiting_, [](const LaneQueue::Waiting& one, const auto& other) {
      return one.session == other.first && one.need == other.second;
    }));
    RC_ASSERT(came_ == gone_ + admitted_.size() + waiting_.size());
    // Asking changes nothing.
    const LaneTable before = table_;
    const SessionNeed need = AnyNeed();
    RC_ASSERT(table_.FindLane(need) == before.FindLane(need));
    RC_ASSERT(table_ == before);
  }

  std::mt19937_64 random_;
  const std::uint64_t unit_;
  const std::size_t max_lanes_;
  const bool ranked_;
  LaneTable table_;
  LaneQueue queue_;
  // What should be so.
  std::map<SessionId, SessionNeed> waiting_;
  std::map<SessionId, SessionNeed> admitted_;
  std::map<SessionId, int> overtaken_;
  std::uint64_t came_ = 0;
  std::uint64_t gone_ = 0;
  std::uint64_t last_total_ = 0;
};

TEST(LaneMix, TenThousandEventsViolateNothingAndStarveNobody) {
  const auto holds = rc::check("any mix", [](std::uint64_t seed) {
    Mix mix(seed);
    for (int i = 0; i < 10'000; ++i) mix.Step();
    mix.Drain();
  });
  EXPECT_TRUE(holds);
}

// One that needs nearly all of the device, and others that come without end. At most those who were there before it,
// and so many as may overtake it, have to end first.
TEST(LaneMix, ALargeSessionIsAdmittedHoweverManySmallOnesCome) {
  const auto holds = rc::check("small ones without end", [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    LaneTable table(1000);
    LaneQueue queue;
    std::vector<SessionId> running;
    const SessionId large{0};
    std::uint64_t came = 0;
    const int after = static_cast<int>(random() % 50);
    std::size_t most = 0;
    for (int ended = 0;; ++ended) {
      if (ended == after) {
        most = running.size() + queue.waiting().size() + LaneQueue::kMostOvertaken;
        RC_ASSERT(queue.Add(large, {.persistent = 100, .ephemeral = 850}).has_value());
      }
      RC_ASSERT(ended < after || static_cast<std::size_t>(ended - after) <= most);
      for (int i = 0; i < 3; ++i) {
        const SessionNeed small{.persistent = random() % 100, .ephemeral = random() % 100};
        RC_ASSERT(queue.Add(SessionId{++came}, small).has_value());
      }
      while (const auto turn = queue.Next(table)) {
        RC_ASSERT(table.Admit(turn->session, turn->need, turn->answer).has_value());
        RC_ASSERT(queue.Take(turn->session).has_value());
        running.push_back(turn->session);
      }
      if (table.Find(large)) return;
      if (running.empty()) continue;
      table.BoundaryOfAll();
      const auto gone = running.begin() + static_cast<std::ptrdiff_t>(random() % running.size());
      RC_ASSERT(table.Leave(*gone).has_value());
      running.erase(gone);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
