// Counts what a simulation allocates, in a program of its own.

#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "colocation/simulation/simulation.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* Allocate(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return Allocate(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return Allocate(bytes);
}
// The standard library's algorithms ask this way, too.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

std::uint64_t AllocationsOf(const char* policy, std::chrono::seconds duration) {
  const Scenario scenario{
      .machine = {.width = 2, .limit = CpuLimit{.quota = 120ms, .period = 100ms}},
      .models = {{.name = "served", .rate = 50, .slo = 10s, .max_batch = 4, .steps = {{.time = 5ms, .width = 1.5}}}},
      .trainers = {{.name = "trained", .steps = {{.time = 5ms, .width = 2, .heavy = true}}}},
      .duration = duration};
  const auto made = MakeColocationPolicy(policy);
  const std::uint64_t before = allocations;
  const SimulationResult result = Simulate(scenario, **made);
  EXPECT_EQ(result.models[0].rejected, 0);
  return allocations - before;
}

TEST(SimulationAllocation, ALongerSimulationAllocatesNoMoreThanAShortOne) {
  for (const char* policy : {"tandem", "none", "op_gate", "time_slice"}) {
    // A line may have to grow once or twice more in a longer one.
    EXPECT_LE(AllocationsOf(policy, 1000s), AllocationsOf(policy, 10s) + 8) << policy;
  }
}

}  // namespace
}  // namespace tandem::simulation
