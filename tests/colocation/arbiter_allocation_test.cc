// Counts what decisions allocate, in a program of its own.

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "colocation/arbiter.h"
#include "tests/fakes/counted_allocations.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/fake_root.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem {
namespace {

// Real files of a limit that binds, but for the kernel behind them.
CpuLimitMeters Limits(const fakes::FakeRoot& root) {
  root.Put("proc/self/cgroup", "0::/\n");
  root.Put("sys/fs/cgroup/cpu.max", "100000 100000\n");
  root.Put("sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 1\nnr_throttled 0\n");
  return OpenCpuLimits(root.path());
}

TEST(ArbiterAllocation, DecisionsTakeNoMemory) {
  constexpr int kTrainers = 32;
  constexpr int kWaiting = 1000;
  for (const char* name : {"tandem", "pause", "op_gate"}) {
    const fakes::FakeRoot root;
    const auto policy = MakeColocationPolicy(name).value();
    const auto recorder = std::make_unique<FlightRecorder>(1024);
    TrainingToll toll(1);
    Arbiter arbiter(RealClock::Instance(), *policy, Limits(root), {.cores = 2, .all_cores = 2, .serving_threads = 2},
                    recorder.get(), &toll);
    const auto model = [](int request) { return static_cast<ModelBit>(1 + request % (kModelBits - 1)); };
    std::deque<StoppableChild> children(kTrainers);
    std::vector<std::unique_ptr<TrainerBoard>> boards;
    std::vector<std::unique_ptr<TrainerLease>> leases;
    for (const StoppableChild& child : children) {
      boards.push_back(TrainerBoard::Create().value());
      leases.push_back(arbiter.Admit({.pidfd = child.pidfd(), .board = boards.back().get()}));
      leases.back()->SetGated({{0, SetOf(model(static_cast<int>(leases.size())))}});
    }
    // State() itself allocates, so it is asked only before and afterwards.
    const auto decide = [&](int times) {
      for (int i = 0; i < times; ++i) {
        for (int j = 0; j < kWaiting; ++j) arbiter.RequestBegan(model(j));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        // Some stand still, too, while it decides about the others.
        leases[0]->SetPaused(i % 2 == 0);
        leases[1]->SetWaiting(i % 2 == 0);
        for (int j = 0; j < kWaiting; ++j) arbiter.RequestEnded(model(j));
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    decide(20);
    const std::uint64_t decided = arbiter.State().decisions.count();
    const std::uint64_t before = fakes::allocations;
    decide(500);  // For more than a second, after which limits are read anew.
    EXPECT_EQ(fakes::allocations, before) << name;
    EXPECT_GT(arbiter.State().decisions.count(), decided) << name;
    EXPECT_GE(recorder->training().written(), 2 * 520u) << "and all of it was told";
  }
}

}  // namespace
}  // namespace tandem
