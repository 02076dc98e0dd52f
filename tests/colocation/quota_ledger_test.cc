#include "colocation/quota_ledger.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/format.h"
#include "colocation/demand_meter.h"
#include "colocation/policies/tandem.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr nanoseconds kStep = 100us;

// A control group as the kernel runs it, moved on in small steps of a fake clock.
struct Group {
  CpuLimit limit{.quota = 100ms, .period = 100ms};
  bool limited = true;
  nanoseconds phase = 12ms;
  CpuUse use;
  nanoseconds left = 100ms;
  nanoseconds late{0};
  nanoseconds counted{0};  // What of the use is visible.
  nanoseconds counted_at{0};
  int ran = 0;
  std::int64_t uncounted = 0;  // Periods since the clock's beginning that were none of its own.

  // What threads get of the time that they would use, unless a group around this one has less.
  nanoseconds Grant(MonotonicTime now, nanoseconds wanted) {
    const nanoseconds since = now.time_since_epoch() - phase;
    if (since / limit.period != (since - kStep) / limit.period) {
      left = limit.quota;
      late = late == 0ns ? nanoseconds(200us) : 0ns;
    }
    // Now and then a little later than it begins.
    use.periods = static_cast<std::uint64_t>((since - late) / limit.period - uncounted);
    const nanoseconds granted = limited ? std::min(wanted, left) : wanted;
    if (granted < wanted && left > 0ns) ++use.throttled;
    return granted;
  }

  // So many threads ran, and used so much.
  void Use(MonotonicTime now, int threads, nanoseconds used) {
    left -= used;
    use.used += used;
    // The kernel counts at ticks, of which some make 250 a second, and when a thread leaves its core.
    if (now.time_since_epoch() - counted_at >= 4ms || threads < std::exchange(ran, threads)) {
      counted = use.used;
      counted_at = now.time_since_epoch();
    }
  }

  // Nothing ran until now. A timer that has gone on counts what has passed before any thread runs; one that was stopped
  // counts nothing before the next beginning.
  void Resume(MonotonicTime now, bool counts) {
    const std::int64_t begun = (now.time_since_epoch() - phase) / limit.period;
    if (counts) {
      use.periods = static_cast<std::uint64_t>(begun - uncounted);
    } else {
      uncounted = begun - static_cast<std::int64_t>(use.periods);
    }
    left = limit.quota;
    late = 0ns;
  }
};

class GroupMeter final : public CpuLimitMeter {
 public:
  explicit GroupMeter(const Group& group) : group_(group) {}
  [[nodiscard]] std::string name() const override { return "group"; }
  [[nodiscard]] std::optional<CpuLimit> Limit() override {
    if (!group_.limited) return std::nullopt;
    return group_.limit;
  }
  [[nodiscard]] Result<CpuUse> Use() override {
    CpuUse use = group_.use;
    use.used = group_.counted;
    return use;
  }

 private:
  const Group& group_;
};

// A machine of two cores: requests that need the CPU for a while each, in front of training that takes the rest.
class Machine {
 public:
  static constexpr int kCores = 2;

  Machine()
      : ledger_(std::make_unique<GroupMeter>(group), clock_, kCores, [this] { return served_; }),
        outer_ledger_(std::make_unique<GroupMeter>(outer), clock_, kCores, [this] { return served_; }) {}

  struct Request {
    nanoseconds at;
    nanoseconds work;  // Of one thread.
  };

  struct Outcome {
    nanoseconds served{0};
    nanoseconds trained{0};
    nanoseconds stalled{0};  // Requests wanted a core, and the quota stood in the way.

    Outcome& operator+=(const Outcome& other) {
      served += other.served;
      trained += other.trained;
      stalled += other.stalled;
      return *this;
    }
  };

  // Runs for a time. `training`: none, as it likes, or as the policy says.
  enum class Training { kNone, kFree, kPaced };
  Outcome Run(nanoseconds time, const std::vector<Request>& requests, Training training) {
    Outcome outcome;
    std::size_t next = 0;
    std::vector<nanoseconds> running;
    const MonotonicTime begin = clock_.Now();
    MonotonicTime look = begin;
    bool held = false;
    for (; clock_.Now() - begin < time; clock_.Advance(kStep)) {
      const MonotonicTime now = clock_.Now();
      while (next < requests.size() && begin + requests[next].at <= now) running.push_back(requests[next++].work);
      const auto before = std::exchange(pending_, static_cast<std::int64_t>(running.size()));
      const bool told = hears_of_requests_ && (before == 0) != (pending_ == 0);
      if (training == Training::kPaced && (told || now >= look)) std::tie(held, look) = Ask(now);
      const int serving = std::min<int>(run_threads, static_cast<int>(running.size()));
      const int budget = training == Training::kPaced ? threads_ : kCores;
      const int training_threads = training == Training::kNone || held ? 0 : std::min(budget, kCores - serving);
      const auto for_training = nanoseconds(std::llround(trainer_busy * static_cast<double>(training_threads) * 1e5));
      const nanoseconds wanted = serving * kStep + for_training;
      const nanoseconds got = outer.Grant(now, group.Grant(now, wanted));
      for (Group* of : {&group, &outer}) of->Use(now, serving + training_threads, got);
      // Who runs dry is not known; requests count as those who do.
      const nanoseconds for_requests = std::min(got, serving * kStep);
      outcome.served += for_requests;
      served_ += for_requests;
      outcome.trained += got - for_requests;
      if (got < wanted && serving > 0) outcome.stalled += kStep;
      for (int i = 0; i < serving; ++i) running[static_cast<std::size_t>(i)] -= for_requests / serving;
      answered_ += std::erase_if(running, [](nanoseconds work) { return work <= 0ns; });
    }
    return outcome;
  }

  // By the clock, nothing runs for so long: a machine that was suspended, or a virtual one that was moved.
  void StandStill(nanoseconds time, bool counts) {
    clock_.Advance(time);
    for (Group* of : {&group, &outer}) of->Resume(clock_.Now(), counts);
  }
  void Change(CpuLimit limit) {
    group.limit = limit;
    group.Resume(clock_.Now(), false);
  }
  void ChangeOuter(CpuLimit limit) {
    outer.limited = true;
    outer.limit = limit;
    outer.Resume(clock_.Now(), false);
  }

  Group group;
  Group outer{.limited = false, .phase = 55ms};  // That the group is in.
  double trainer_busy = 1;                       // What a thread of the trainer uses of its core.
  int run_threads = kCores;                      // Requests that are computed at once.

  [[nodiscard]] const QuotaLedger& ledger() const { return ledger_; }
  [[nodiscard]] std::int64_t pending() const { return pending_; }

 private:
  // As the arbiter does.
  std::pair<bool, MonotonicTime> Ask(MonotonicTime now) {
    std::vector<QuotaView> views;
    bool learning = false;
    bool fresh = false;
    for (QuotaLedger* ledger : {&ledger_, &outer_ledger_}) {
      ledger->Look();
      learning |= ledger->learning();
      fresh |= ledger->fresh();
      if (ledger->view()) views.push_back(*ledger->view());
    }
    demand_.Look(now, {.used = served_, .answered = answered_, .pending = pending_});
    if (learning) return {false, now + 500us};
    const ColocationSnapshot snapshot{.pending = pending_,
                                      .held = held_,
                                      .parallelism = kCores,
                                      .serving = run_threads,
                                      .demand = demand_.demand(),
                                      .quotas = views};
    hears_of_requests_ = TandemPolicy().HearsOfRequests(snapshot);
    const auto decision = TandemPolicy().Decide(snapshot);
    held_ = decision.hold.has_value();
    threads_ = decision.threads > 0 ? decision.threads : kCores;
    const nanoseconds wait = std::min<nanoseconds>(decision.look_again, fresh ? 500us : 1'000'000us);
    return {held_, now + std::max(wait, kStep)};
  }

  FakeClock clock_;
  QuotaLedger ledger_;
  QuotaLedger outer_ledger_;
  bool held_ = false;
  int threads_ = kCores;
  std::int64_t pending_ = 0;
  bool hears_of_requests_ = false;
  std::uint64_t answered_ = 0;
  DemandMeter demand_;
  nanoseconds served_{0};
};

std::vector<Machine::Request> Poisson(std::uint64_t seed, double rate, nanoseconds work, nanoseconds time) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(rate);
  std::vector<Machine::Request> requests;
  for (double at = gap(random); at < std::chrono::duration<double>(time).count(); at += gap(random)) {
    requests.push_back({.at = nanoseconds(static_cast<std::int64_t>(at * 1e9)), .work = work});
  }
  return requests;
}

TEST(QuotaPacing, GivesTrainingAllOfTheQuotaWhenNobodyAsks) {
  Machine machine;
  machine.Run(1s, {}, Machine::Training::kPaced);
  const auto throttled = machine.group.use.throttled;
  const auto outcome = machine.Run(10s, {}, Machine::Training::kPaced);
  EXPECT_GE(outcome.trained, 9'500ms) << "of 10 s";
  EXPECT_EQ(machine.group.use.throttled, throttled) << "and never all of it";
}

// Over many loads: a request may now and then find less than it needs, but not often; and what they leave is used, as
// far as training can.
TEST(QuotaPacing, HardlyEverMakesARequestWaitThatWouldNotWaitAlone) {
  constexpr int kSeeds = 3;
  for (const int run_threads : {1, 2}) {
    for (const double rate : {10.0, 20.0, 30.0, 50.0}) {
      for (const double busy : {0.8, 1.0}) {
        Machine::Outcome without;
        Machine::Outcome with;
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
          const auto requests = Poisson(seed, rate, 12ms, 20s);
          Machine alone;
          alone.run_threads = run_threads;
          without += alone.Run(20s, requests, Machine::Training::kNone);
          Machine beside;
          beside.run_threads = run_threads;
          beside.trainer_busy = busy;
          beside.Run(3s, Poisson(seed + 100, rate, 12ms, 3s), Machine::Training::kPaced);
          with += beside.Run(20s, requests, Machine::Training::kPaced);
        }
        const nanoseconds time = kSeeds * 20s;
        SCOPED_TRACE(Format("{} threads, {} requests a second, trainers busy to {}", run_threads, rate, busy));
        EXPECT_LE(with.stalled, without.stalled + time / 200);
        EXPECT_GE(with.served, without.served - time / 200);
        if (busy < 1) continue;
        EXPECT_GE(with.trained, (time - with.served) * 19 / 20);
      }
    }
  }
}

TEST(QuotaPacing, TheFirstRequestOfAllIsExpected) {
  for (int i = 0; i < 20; ++i) {
    Machine machine;
    machine.Run(5s + i * 5ms, {}, Machine::Training::kPaced);
    EXPECT_LE(machine.Run(100ms, {{.at = 0ms, .work = 12ms}}, Machine::Training::kPaced).stalled, 1ms) << i;
  }
}

TEST(QuotaPacing, TheFirstRequestAfterAQuietMinuteIsExpected) {
  Machine machine;
  machine.Run(10s, Poisson(3, 30, 12ms, 10s), Machine::Training::kPaced);
  nanoseconds stalled{0};
  for (int i = 0; i < 20; ++i) {
    machine.Run(3s + i * 5ms, {}, Machine::Training::kPaced);
    stalled += machine.Run(100ms, {{.at = 0ms, .work = 12ms}}, Machine::Training::kPaced).stalled;
  }
  EXPECT_LE(stalled, 20ms) << "a millisecond each";
}

TEST(QuotaPacing, GoesOnAsBeforeWhenTheMachineStoodStillForAnHour) {
  constexpr int kPhases = 10;
  const auto before = Poisson(4, 30, 12ms, 5s);
  const auto after = Poisson(5, 30, 12ms, 10s);
  Machine::Outcome undisturbed;
  for (int i = 0; i < kPhases; ++i) {
    Machine machine;
    machine.group.phase = (machine.group.phase + 100ms - i * 10ms) % 100ms;  // As it is after that hour.
    machine.Run(5s, before, Machine::Training::kPaced);
    undisturbed += machine.Run(10s, after, Machine::Training::kPaced);
  }
  for (const bool counts : {true, false}) {
    SCOPED_TRACE(counts ? "periods counted" : "periods not counted");
    Machine::Outcome outcome;
    for (int i = 0; i < kPhases; ++i) {
      Machine machine;
      machine.Run(5s, before, Machine::Training::kPaced);
      ASSERT_GT(machine.pending(), 0) << "or this shows less";
      machine.StandStill(1h + i * 10ms, counts);
      outcome += machine.Run(10s, after, Machine::Training::kPaced);
      ASSERT_TRUE(machine.ledger().view());
      EXPECT_LE(machine.ledger().view()->until_refill, machine.group.limit.period);
    }
    EXPECT_LE(outcome.stalled, undisturbed.stalled * 5 / 4);
    EXPECT_GE(outcome.trained, undisturbed.trained * 19 / 20);
  }
}

// A container with a limit in a pod that has one, too, whose periods are others. First the pod's is the tighter one.
TEST(QuotaPacing, KeepsToTheTighterOfTwoNestedGroupsAsIfThereWereNoOther) {
  const CpuLimit tight{.quota = 60ms, .period = 100ms};
  const CpuLimit loose{.quota = 80ms, .period = 50ms};
  const auto requests = Poisson(7, 12, 12ms, 20s);
  const auto serve = [&](Machine& machine) {
    machine.Run(3s, Poisson(8, 12, 12ms, 3s), Machine::Training::kPaced);
    return machine.Run(20s, requests, Machine::Training::kPaced);
  };
  Machine single;
  single.Change(tight);
  const auto by_one = serve(single);
  Machine nested;
  for (const bool outer_is_tighter : {true, false}) {
    SCOPED_TRACE(outer_is_tighter ? "the outer one" : "the inner one");
    nested.Change(outer_is_tighter ? loose : tight);
    nested.ChangeOuter(outer_is_tighter ? tight : loose);
    const auto by_both = serve(nested);
    EXPECT_LE(by_both.stalled, by_one.stalled + 20s / 200);
    EXPECT_GE(by_both.trained, by_one.trained * 9 / 10);
    nested.Run(5s, {}, Machine::Training::kPaced);
    const auto throttled = [&] { return nested.group.use.throttled + nested.outer.use.throttled; };
    const auto before = throttled();
    EXPECT_GE(nested.Run(10s, {}, Machine::Training::kPaced).trained, 5'400ms) << "of 6 s";
    EXPECT_LE(throttled() - before, 25) << "of 100 periods";
  }
}

TEST(QuotaPacing, IsWhatKeepsRequestsFromStalling) {
  const auto requests = Poisson(1, 30, 12ms, 5s);
  Machine machine;
  EXPECT_GT(machine.Run(5s, requests, Machine::Training::kFree).stalled, 100ms) << "or this simulates nothing";
}

TEST(QuotaLedger, TellsNothingWhileNothingBinds) {
  Machine machine;
  machine.group.limit.quota = 200ms;
  machine.Run(1s, {}, Machine::Training::kPaced);
  EXPECT_FALSE(machine.ledger().view());
  EXPECT_FALSE(machine.ledger().learning());
}

TEST(QuotaLedger, LeavesLimitsOfVeryShortPeriodsAlone) {
  Machine machine;
  machine.group.limit = {.quota = 1ms, .period = 2ms};
  machine.Run(1s, {}, Machine::Training::kPaced);
  EXPECT_FALSE(machine.ledger().view());
  EXPECT_FALSE(machine.ledger().learning());
}

TEST(QuotaLedger, FollowsALimitThatIsChangedLiftedAndSetAgain) {
  Machine machine;
  machine.Run(1s, {}, Machine::Training::kPaced);
  ASSERT_TRUE(machine.ledger().view());
  machine.group.limited = false;
  machine.Run(2s, {}, Machine::Training::kPaced);
  EXPECT_FALSE(machine.ledger().view());
  EXPECT_EQ(machine.Run(1s, {}, Machine::Training::kPaced).trained, 2s) << "all of both cores";
  machine.group.limited = true;
  machine.group.limit = {.quota = 25ms, .period = 50ms};
  machine.Run(2s, {}, Machine::Training::kPaced);
  const auto throttled = machine.group.use.throttled;
  const auto outcome = machine.Run(4s, {}, Machine::Training::kPaced);
  EXPECT_GE(outcome.trained, 1'600ms) << "of 2 s; the margins are the same in a shorter period";
  EXPECT_EQ(machine.group.use.throttled, throttled);
}

TEST(QuotaLedger, FollowsALimitThatIsChangedWhileItsPeriodsAreBeingLearnt) {
  for (const CpuLimit& other : {CpuLimit{.quota = 50ms, .period = 100ms}, CpuLimit{.quota = 40ms, .period = 50ms},
                                CpuLimit{.quota = 100ms, .period = 200ms}}) {
    for (int i = 0; i < 10; ++i) {
      SCOPED_TRACE(Format("{} of {} ms, after {} ms", other.quota / 1ms, other.period / 1ms, 1 + i));
      Machine machine;
      machine.Run(1ms + i * 1ms, {}, Machine::Training::kPaced);
      ASSERT_TRUE(machine.ledger().learning());
      machine.Change(other);
      machine.Run(2s, {}, Machine::Training::kPaced);
      EXPECT_EQ(machine.ledger().limit(), other);
      EXPECT_TRUE(machine.ledger().view());
      const auto throttled = machine.group.use.throttled;
      const nanoseconds quota = 4s / other.period * other.quota;
      EXPECT_GE(machine.Run(4s, {}, Machine::Training::kPaced).trained, quota * 4 / 5);
      EXPECT_EQ(machine.group.use.throttled, throttled);
    }
  }
}

TEST(QuotaLedger, ALimitThatIsLiftedWhileItsPeriodsAreBeingLearntBindsNoMore) {
  Machine machine;
  machine.Run(5ms, {}, Machine::Training::kPaced);
  ASSERT_TRUE(machine.ledger().learning());
  machine.group.limited = false;
  machine.Run(2s, {}, Machine::Training::kPaced);
  EXPECT_FALSE(machine.ledger().learning());
  EXPECT_EQ(machine.Run(1s, {}, Machine::Training::kPaced).trained, 2s) << "all of both cores";
}

}  // namespace
}  // namespace tandem
