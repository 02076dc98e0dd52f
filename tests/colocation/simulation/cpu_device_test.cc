#include "colocation/simulation/cpu_device.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/policies/idle.h"
#include "colocation/policies/nice.h"
#include "colocation/policies/none.h"
#include "colocation/policies/partition.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

Step Wide(double width, bool heavy = false) {
  return {.time = 10ms, .width = width, .heavy = heavy};
}

// Streams with one step each.
struct Machinery {
  Machinery(const std::vector<double>& runs, const std::vector<Step>& trainers) {
    for (const double width : runs) run_steps.push_back({Wide(width)});
    for (const Step& step : trainers) trainer_steps.push_back({step});
    for (const auto& steps : run_steps) this->runs.emplace_back().Load(steps, 1, 0);
    for (const auto& steps : trainer_steps) this->trainers.emplace_back().Load(steps, 1, 0);
  }
  std::vector<std::vector<Step>> run_steps;
  std::vector<std::vector<Step>> trainer_steps;
  std::vector<Stream> runs;
  std::vector<Stream> trainers;
};

TEST(CpuDevice, TheIdleClassGetsWhatRequestsLeave) {
  Machinery m({1.5}, {Wide(2)});
  CpuDevice({.width = 2}, IdlePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 1);
  EXPECT_EQ(m.trainers[0].rate, 0.25) << "half a core of the two that it wants";
  EXPECT_EQ(m.trainers[0].use, 0.5);
}

TEST(CpuDevice, ThreadsInLockstepWaitForTheOneThatIsInTheWay) {
  Machinery m({1}, {Wide(2), Wide(1)});
  m.trainers[0].lockstep = true;
  m.trainers[1].lockstep = true;
  CpuDevice({.width = 4}, IdlePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.trainers[0].rate, 1) << "there is room for all";
  CpuDevice({.width = 2}, IdlePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.trainers[0].rate, 0);
  EXPECT_NEAR(m.trainers[1].rate, 1.0 / 3, 1e-9) << "its one thread shares the core that is left";
}

TEST(CpuDevice, EqualsHalveTheCores) {
  Machinery m({2}, {Wide(2)});
  CpuDevice({.width = 2}, NonePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 0.5);
  EXPECT_EQ(m.trainers[0].rate, 0.5);
}

TEST(CpuDevice, TheLeastWeightTakesNextToNothing) {
  Machinery m({2}, {Wide(2)});
  CpuDevice({.width = 2}, NicePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_NEAR(m.runs[0].rate, 1024.0 / (1024 + 15), 1e-9);
  EXPECT_NEAR(m.trainers[0].rate, 15.0 / (1024 + 15), 1e-9);
}

TEST(CpuDevice, NobodyIsSlowedWhereThereAreCoresForAll) {
  Machinery m({2}, {Wide(2)});
  CpuDevice({.width = 4}, NonePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 1);
  EXPECT_EQ(m.trainers[0].rate, 1);
}

TEST(CpuDevice, PartsDoNotLendToOneAnother) {
  Machinery m({}, {Wide(2)});
  CpuDevice({.width = 2}, PartitionPolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.trainers[0].rate, 0.5) << "although nobody asks";
}

TEST(CpuDevice, AHoldStopsAnOperatorHalfWay) {
  Machinery m({1}, {Wide(1)});
  const CpuDevice device({.width = 1}, IdlePolicy());
  device.Share(m.runs, m.trainers, {});
  device.Share(m.runs, m.trainers, {.hold = true});
  EXPECT_TRUE(m.trainers[0].blocked);
  EXPECT_EQ(m.trainers[0].rate, 0);
}

TEST(CpuDevice, AGateStopsOnlyHeavyOperatorsThatHaveNotBegun) {
  Machinery m({}, {Wide(1, true), Wide(1, true), Wide(1, false)});
  m.trainers[0].begun = true;
  CpuDevice({.width = 4}, NonePolicy()).Share(m.runs, m.trainers, {.hold_heavy = true});
  EXPECT_EQ(m.trainers[0].rate, 1);
  EXPECT_EQ(m.trainers[1].rate, 0);
  EXPECT_EQ(m.trainers[2].rate, 1);
}

TEST(CpuDevice, TrainingOnTheSameCoresChangesTheSpeedOfRuns) {
  const Machine machine{.width = 2, .speed_beside_training = 1.25};
  Machinery m({1}, {Wide(1)});
  CpuDevice(machine, IdlePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 1.25);
  EXPECT_EQ(m.runs[0].use, 1.25) << "a request takes the same CPU time in less time";
  CpuDevice(machine, IdlePolicy()).Share(m.runs, m.trainers, {.hold = true});
  EXPECT_EQ(m.runs[0].rate, 1) << "who stands still keeps no core awake";
  Machinery apart({1}, {Wide(1)});
  CpuDevice(machine, PartitionPolicy()).Share(apart.runs, apart.trainers, {});
  EXPECT_EQ(apart.runs[0].rate, 1);
}

TEST(CpuDevice, NothingMovesWhenTheQuotaIsUsedUp) {
  Machinery m({1}, {Wide(1)});
  CpuDevice({.width = 2}, IdlePolicy()).Share(m.runs, m.trainers, {.stalled = true});
  EXPECT_EQ(m.runs[0].rate + m.trainers[0].rate, 0);
}

TEST(CpuDevice, NeverGivesMoreCoresThanThereAre) {
  const auto holds = rc::check(
      "shares of a machine", [](const std::vector<std::uint8_t>& runs, const std::vector<std::uint8_t>& trainers) {
        const int cores = 1 + *rc::gen::inRange(0, 8);
        std::vector<double> widths;
        std::vector<Step> steps;
        for (const int part : runs) widths.push_back((1 + part) * cores / 256.0);
        for (const int part : trainers) steps.push_back(Wide(part * cores / 255.0));
        for (const std::string_view name : ColocationPolicyNames()) {
          Machinery m(widths, steps);
          const auto policy = MakeColocationPolicy(name);
          CpuDevice({.width = cores, .speed_beside_training = 1.3}, **policy).Share(m.runs, m.trainers, {});
          double used = 0;
          for (const Stream& run : m.runs) used += run.use;
          const double served = used;
          for (const Stream& trainer : m.trainers) used += trainer.use;
          RC_ASSERT(used <= cores + 1e-9);
          if (policy.value()->trainer_class() == TrainerClass::kIdle) {
            Machinery alone(widths, {});
            CpuDevice({.width = cores}, **policy).Share(alone.runs, alone.trainers, {});
            double without = 0;
            for (const Stream& run : alone.runs) without += run.use;
            RC_ASSERT(served >= without - 1e-9);
          }
        }
      });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem::simulation
