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

Status KeepTo(std::span<const int> cores) {
  const cpu_set_t set = CoreSet(cores);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return {};
  return Fail(ErrorCode::kUnavailable, "--colocation: the cores cannot be divided: {}", ErrnoText());
}

int TrainingThreads(const ServeOptions& options, const ColocationPolicy& policy, bool paced) {
  if (options.training_threads > 0) return options.training_threads;
  return TrainerThreads(policy, {.allowed = AllowedCores(), .usable = UsableCores()}, paced);
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
  TANDEM_ASSIGN(colocation.policy, MakeColocationPolicy(options.colocation));
  const ColocationPolicy& policy = *colocation.policy;
  CpuLimitMeters limits;
  if (policy.heeds_quotas() && options.allow_training) limits = OpenCpuLimits();
  const ArbitratedMachine machine = Machine(options);
  for (const auto& meter : limits.meters) {
    const auto limit = meter->Limit();
    if (!limit || !Binds(*limit, machine.all_cores)) continue;
    colocation.paced = true;
    LogInfo("CPU limit", {{"group", meter->name()}, {"cores", std::to_string(limit->cores())}});
  }
  for (const std::string& group : limits.unread) {
    LogWarning("training is not paced by a CPU limit: its use cannot be read", {{"group", group}});
  }
  colocation.training_threads = TrainingThreads(options, policy, limits.unread.empty());
  colocation.fixed_threads = TrainingThreads(options, policy, false);
  const std::vector<int> cores = AllowedCoreNumbers();
  if (const auto serving = policy.ServingCores(static_cast<int>(cores.size())); serving && options.allow_training) {
    TANDEM_TRY(KeepTo(std::span(cores).first(static_cast<std::size_t>(*serving))));
    colocation.training_cores.assign(cores.begin() + *serving, cores.end());
  }
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
  return colocation;
}

}  // namespace tandem
