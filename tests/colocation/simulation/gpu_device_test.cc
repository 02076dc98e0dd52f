#include "colocation/simulation/gpu_device.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/policies/idle.h"
#include "colocation/policies/none.h"
#include "colocation/policies/partition.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

const Machine kGpu{.kind = DeviceKind::kGpu, .width = 80};

struct Machinery {
  // Kernels of these widths, trainers having become ready before the runs.
  Machinery(const std::vector<double>& run_widths, const std::vector<Step>& training) {
    for (const Step& step : training) trainer_steps.push_back({step});
    for (const double width : run_widths) run_steps.push_back({{.time = 1ms, .width = width}});
    std::uint64_t order = 0;
    for (const auto& steps : trainer_steps) trainers.emplace_back().Load(steps, 1, order++);
    for (const auto& steps : run_steps) runs.emplace_back().Load(steps, 1, order++);
  }
  std::vector<std::vector<Step>> run_steps;
  std::vector<std::vector<Step>> trainer_steps;
  std::vector<Stream> runs;
  std::vector<Stream> trainers;
};

Step Kernel(double width, bool heavy = false) {
  return {.time = 5ms, .width = width, .heavy = heavy};
}

TEST(GpuDevice, KernelsThatFitRunBesideOneAnotherAtFullSpeed) {
  Machinery m({40}, {Kernel(40)});
  GpuDevice(kGpu, NonePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 1);
  EXPECT_EQ(m.trainers[0].rate, 1);
}

TEST(GpuDevice, WhatDoesNotFitWaitsInOrder) {
  Machinery m({40}, {Kernel(80)});
  GpuDevice(kGpu, NonePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.trainers[0].rate, 1) << "it came first";
  EXPECT_EQ(m.runs[0].rate, 0);
}

TEST(GpuDevice, KernelsOfRequestsComeFirstWhereTrainersRankBehind) {
  Machinery m({40}, {Kernel(80)});
  GpuDevice(kGpu, IdlePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 1);
  EXPECT_EQ(m.trainers[0].rate, 0);
}

TEST(GpuDevice, AWideKernelIsNotPassedByForEver) {
  Machinery m({}, {Kernel(60), Kernel(40), Kernel(20)});
  GpuDevice(kGpu, NonePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.trainers[1].rate, 0);
  EXPECT_EQ(m.trainers[2].rate, 0) << "it would fit, but came later";
}

TEST(GpuDevice, NoKernelThatHasBegunIsInterrupted) {
  Machinery m({80}, {Kernel(80, true)});
  const GpuDevice device(kGpu, IdlePolicy());
  m.trainers[0].begun = true;
  device.Share(m.runs, m.trainers, {.hold = true});
  EXPECT_EQ(m.trainers[0].rate, 1);
  EXPECT_FALSE(m.trainers[0].blocked);
  EXPECT_EQ(m.runs[0].rate, 0);
  m.trainers[0].GoTo(0, 9);
  device.Share(m.runs, m.trainers, {.hold = true});
  EXPECT_TRUE(m.trainers[0].blocked) << "the next one does not begin";
  EXPECT_EQ(m.runs[0].rate, 1);
}

TEST(GpuDevice, AGateLetsLightKernelsPass) {
  Machinery m({40}, {Kernel(80, true), Kernel(20)});
  GpuDevice(kGpu, NonePolicy()).Share(m.runs, m.trainers, {.hold_heavy = true});
  EXPECT_EQ(m.trainers[0].rate, 0);
  EXPECT_EQ(m.trainers[1].rate, 1);
  EXPECT_EQ(m.runs[0].rate, 1);
}

TEST(GpuDevice, AKernelWiderThanItsPartTakesLonger) {
  Machinery m({40}, {Kernel(80)});
  GpuDevice(kGpu, PartitionPolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.runs[0].rate, 1);
  EXPECT_EQ(m.trainers[0].rate, 0.5);
  EXPECT_EQ(m.trainers[0].use, 40);
}

TEST(GpuDevice, WhoWaitsForSomethingElseNeedsNoRoom) {
  Machinery m({80}, {Kernel(0)});
  GpuDevice(kGpu, IdlePolicy()).Share(m.runs, m.trainers, {});
  EXPECT_EQ(m.trainers[0].rate, 1);
  EXPECT_EQ(m.runs[0].rate, 1);
}

TEST(GpuDevice, NeverOccupiesMoreSmsThanThereAre) {
  const auto holds = rc::check("kernels on a GPU",
                               [](const std::vector<std::uint8_t>& runs, const std::vector<std::uint8_t>& trainers) {
                                 std::vector<double> widths;
                                 std::vector<Step> steps;
                                 for (const int width : runs) widths.push_back(width % 81);
                                 for (const int width : trainers) steps.push_back(Kernel(width % 81));
                                 for (const std::string_view name : ColocationPolicyNames()) {
                                   Machinery m(widths, steps);
                                   GpuDevice(kGpu, **MakeColocationPolicy(name)).Share(m.runs, m.trainers, {});
                                   double used = 0;
                                   std::size_t going = 0;
                                   for (const auto& streams : {m.runs, m.trainers}) {
                                     for (const Stream& stream : streams) {
                                       used += stream.use;
                                       going += stream.rate > 0 ? 1 : 0;
                                     }
                                   }
                                   RC_ASSERT(used <= 80);
                                   RC_ASSERT(going > 0 || (runs.empty() && trainers.empty()));
                                 }
                               });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem::simulation
