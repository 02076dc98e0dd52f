#include "server/lifecycle/colocation_wiring.h"

#include <algorithm>
#include <span>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "api/base/errno_text.h"
#include "colocation/trainer_threads.h"
#include "profiler/cpu_limits.h"
#include "profiler/machine.h"
#include "server/lifecycle/part_settings.h"
#include "server/log/log.h"

namespace tandem {
namespace {

// The policy by that name, and the cores divided if it wants that; where they cannot be, the one that comes nearest to
// it without.
Result<std::unique_ptr<const ColocationPolicy>> ChoosePolicy(const ServeOptions& options,
                                                             std::vector<int>& training_cores) {
  TANDEM_ASSIGN(auto policy, MakeColocationPolicy(options.colocation));
  const std::vector<int> cores = AllowedCoreNumbers();
  const auto serving = policy->ServingCores(static_cast<int>(cores.size()));
  if (!serving || !options.allow_training) return policy;
  const cpu_set_t set = CoreSet(std::span(cores).first(static_cast<std::size_t>(*serving)));
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    LogWarning("the cores cannot be divided: trainers are of the kernel's idle class instead",
               {{"reason", ErrnoText()}});
    return MakeColocationPolicy("idle");
  }
  training_cores.assign(cores.begin() + *serving, cores.end());
  return policy;
}

int TrainingThreads(const ServeOptions& options, const ColocationPolicy& policy, CoreCounts cores, bool paced) {
  if (options.training_threads > 0) return options.training_threads;
  return TrainerThreads(policy, cores, paced);
}

CoreSeats::News SeatNews() {
  return {.refused =
              [](const std::string& reason) {
                LogWarning("threads of runs cannot be kept to a core each: they run where the kernel puts them",
                           {{"reason", reason}});
              },
          .anew = [] { LogInfo("threads of runs take their cores anew"); }};
}

ArbitratedMachine Machine(const ServeOptions& options) {
  // Where runs have no width of their own, each worker computes beside the threads that all share.
  const int threads = ChoosesWidths(options) ? RunThreads(options) : RunThreads(options) - 1 + Workers(options);
  return {.cores = AllowedCores(),
          .all_cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))),
          .serving_threads = threads};
}

}  // namespace

Result<Colocation> SetUpColocation(const ServeOptions& options, const Clock& clock, FlightRecorder& recorder) {
  Colocation colocation;
  // All that there are: before they are divided.
  const CoreCounts cores{.allowed = AllowedCores(), .usable = UsableCores()};
  const ArbitratedMachine machine = Machine(options);
  TANDEM_ASSIGN(colocation.policy, ChoosePolicy(options, colocation.training_cores));
  const ColocationPolicy& policy = *colocation.policy;
  colocation.seats = std::make_unique<CoreSeats>(RunCores(options), SeatNews());
  CpuLimitMeters limits;
  if (policy.heeds_quotas() && options.allow_training) limits = OpenCpuLimits();
  for (const auto& meter : limits.meters) {
    const auto limit = meter->Limit();
    if (!limit || !Binds(*limit, machine.all_cores)) continue;
    colocation.paced = true;
    LogInfo("CPU limit", {{"group", meter->name()}, {"cores", std::to_string(limit->cores())}});
  }
  for (const std::string& group : limits.unread) {
    LogWarning("training is not paced by a CPU limit: its use cannot be read", {{"group", group}});
  }
  colocation.training_threads = TrainingThreads(options, policy, cores, limits.unread.empty());
  colocation.fixed_threads = TrainingThreads(options, policy, cores, false);
  if (policy.fits_around_runs() && options.allow_training) {
    auto sign = ServingSign::Create();
    if (sign) {
      colocation.sign = *std::move(sign);
    } else {
      LogWarning("trainers are not shown what requests compute", {{"reason", sign.error().message}});
    }
  }
  colocation.runs = std::make_unique<RunLog>();
  colocation.toll = std::make_unique<TrainingToll>(Workers(options));
  colocation.arbiter =
      std::make_unique<Arbiter>(clock, policy, std::move(limits), machine, &recorder, colocation.toll.get());
  TANDEM_ASSIGN(auto jobs, MakeJobPolicy(options.job_policy));
  if (options.allow_training) {
    TANDEM_ASSIGN(colocation.turns, JobTurns::Create(clock, std::move(jobs), &recorder));
  }
  return colocation;
}

}  // namespace tandem
