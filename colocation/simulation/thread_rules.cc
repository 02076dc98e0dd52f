#include "colocation/simulation/thread_rules.h"

#include <algorithm>
#include <cmath>

#include "colocation/quota_ledger.h"
#include "colocation/trainer_threads.h"

namespace tandem::simulation {
namespace {

int UsableCores(const Machine& machine) {
  if (!machine.limit) return machine.width;
  return std::clamp(static_cast<int>(std::ceil(machine.limit->cores())), 1, machine.width);
}

Step OnThreads(const Step& step, int threads, double speedup) {
  const double most = std::ceil(step.width);
  if (threads >= most) return step;
  const double part = (std::max(threads, 1) - 1) / (most - 1);
  // A step gains no more by threads than it keeps busy.
  const double gain = std::clamp(speedup, 1.0, step.width);
  const double time = static_cast<double>(step.time.count()) * gain / (1 + (gain - 1) * part);
  return {
      .time = std::chrono::nanoseconds(std::llround(time)), .width = 1 + (step.width - 1) * part, .heavy = step.heavy};
}

}  // namespace

int ServingThreads(const Machine& machine, const ColocationPolicy& policy) {
  return std::min(UsableCores(machine), policy.ServingCores(machine.width).value_or(machine.width));
}

int TrainerThreads(const Machine& machine, const ColocationPolicy& policy) {
  return tandem::TrainerThreads(policy, {.allowed = machine.width, .usable = UsableCores(machine)}, true);
}

ArbitratedMachine ArbitratedAs(const Machine& machine) {
  // Where runs have no width of their own, each worker computes beside the threads that all share.
  const int beside = machine.workers == 0 ? 0 : machine.workers - 1;
  return {.cores = machine.width, .all_cores = machine.width, .serving_threads = UsableCores(machine) + beside};
}

bool StepsMatter(const Machine& machine, const ColocationPolicy& policy) {
  const bool paced = policy.heeds_quotas() && machine.limit && Binds(*machine.limit, machine.width);
  return paced || policy.gated_ops() != GatedOps::kNone;
}

std::vector<Step> OnThreads(const Machine& machine, std::vector<Step> steps, int threads, double speedup) {
  if (machine.kind == DeviceKind::kCpu) {
    for (Step& step : steps) step = OnThreads(step, threads, speedup);
  }
  return steps;
}

}  // namespace tandem::simulation
