// Policies are told by the simulator what the server's arbiter would tell them.

#include <memory>
#include <ostream>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "colocation/arbiter.h"
#include "colocation/simulation/simulation.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

// Of a snapshot, what does not depend on the moment but for the requests.
struct Told {
  std::int64_t pending = 0;
  bool held = false;
  int trainers = 0;
  int parallelism = 0;
  int serving = 0;
  bool gated = false;
  bool yields = false;

  friend bool operator==(const Told&, const Told&) = default;
};

std::ostream& operator<<(std::ostream& out, const Told& told) {
  return out << "{" << told.pending << " requests, " << (told.held ? "held, " : "") << told.trainers << " trainers, "
             << told.parallelism << " threads, " << told.serving << " serve" << (told.gated ? ", gated" : "")
             << (told.yields ? ", yield}" : "}");
}

// Holds heavy operators while there are requests, and remembers what it was told.
class ListeningPolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "listening"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kIdle; }
  [[nodiscard]] bool heeds_requests() const override { return true; }
  [[nodiscard]] GatedOps gated_ops() const override { return GatedOps::kHeavy; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override {
    const MutexLock lock(mu_);
    told_.push_back({.pending = snapshot.pending,
                     .held = snapshot.held,
                     .trainers = snapshot.trainers,
                     .parallelism = snapshot.parallelism,
                     .serving = snapshot.serving,
                     .gated = snapshot.slowed != 0,
                     .yields = snapshot.yields});
    return {};
  }

  [[nodiscard]] std::vector<Told> told() const {
    const MutexLock lock(mu_);
    return told_;
  }

 private:
  mutable Mutex mu_;
  mutable std::vector<Told> told_ GUARDED_BY(mu_);
};

// With so many trainers that have heavy operators, before a request comes and while it is there.
std::vector<Told> ByTheServer(const ArbitratedMachine& machine, std::size_t trainers) {
  const ListeningPolicy policy;
  const StoppableChild child;
  const auto board = TrainerBoard::Create().value();
  Arbiter arbiter(RealClock::Instance(), policy, {}, machine);
  std::vector<std::unique_ptr<TrainerLease>> leases;
  for (std::size_t i = 0; i < trainers; ++i) {
    leases.push_back(arbiter.Admit({.pidfd = child.pidfd(), .board = board.get()}));
    leases.back()->SetGated({{0, kEveryModel}});
  }
  std::vector<Told> told;
  for (const std::int64_t pending : {0, 1}) {
    if (pending > 0) arbiter.RequestBegan();
    const auto all = [&] {
      const auto heard = policy.told();
      return !heard.empty() && heard.back().pending == pending && heard.back().gated == (pending > 0) &&
             heard.back().trainers == static_cast<int>(trainers);
    };
    EXPECT_TRUE(Eventually(all)) << trainers << " trainers, " << pending << " requests";
    if (const auto heard = policy.told(); !heard.empty()) told.push_back(heard.back());
  }
  return told;
}

// Requests come one at a time.
std::vector<Told> BySimulation(const Machine& machine, std::size_t trainers, bool heavy = true) {
  const ListeningPolicy policy;
  Scenario scenario{.machine = machine,
                    .models = {{.name = "served", .rate = 10, .poisson = false, .steps = {{.time = 5ms, .width = 1}}}},
                    .duration = 1s};
  scenario.trainers.assign(trainers, {.name = "trained", .steps = {{.time = 5ms, .width = 2, .heavy = heavy}}});
  (void)Simulate(scenario, policy);
  return policy.told();
}

TEST(SimulatedArbitration, TellsPoliciesWhatTheServersArbiterTells) {
  const CpuLimit four_cores{.quota = 400ms, .period = 100ms};
  struct Case {
    Machine machine;
    int serving_threads = 1;  // As the server would have them by default.
  };
  const Case cases[] = {
      {.machine = {.width = 2}, .serving_threads = 2},
      {.machine = {.width = 8, .limit = four_cores}, .serving_threads = 4},
      {.machine = {.width = 8, .workers = 3, .limit = four_cores}, .serving_threads = 6},
      {.machine = {.width = 8, .workers = 3}, .serving_threads = 10},
      {.machine = {.width = 8, .workers = 0, .limit = four_cores}, .serving_threads = 4},
  };
  for (const Case& one : cases) {
    const int cores = one.machine.width;
    const ArbitratedMachine machine{.cores = cores, .all_cores = cores, .serving_threads = one.serving_threads};
    for (std::size_t trainers = 1; trainers <= 3; ++trainers) {
      const auto server = ByTheServer(machine, trainers);
      const auto simulated = BySimulation(one.machine, trainers);
      ASSERT_EQ(server.size(), 2u);
      EXPECT_NE(server[0], server[1]);
      for (const Told& told : server) EXPECT_THAT(simulated, testing::Contains(told));
      for (const Told& told : simulated) EXPECT_THAT(server, testing::Contains(told));
    }
  }
}

TEST(SimulatedArbitration, OnlyHeavyOperatorsAreGated) {
  const auto told = BySimulation({.width = 2}, 1, /*heavy=*/false);
  EXPECT_TRUE(std::ranges::any_of(told, [](const Told& one) { return one.pending > 0; }));
  EXPECT_TRUE(std::ranges::none_of(told, &Told::gated));
}

}  // namespace
}  // namespace tandem::simulation
