#include "server/jobs/machine_watch.h"

#include <chrono>
#include <utility>

#include "api/base/format.h"
#include "profiler/machine.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

// "0.8"; "none" is no number of cores.
std::string CoresOf(const std::optional<CpuLimit>& limit) {
  return limit ? Format("{}", limit->cores()) : "none";
}

}  // namespace

MachineWatch::MachineWatch(const ArbiterState& now) : cores_(AllowedCoreNumbers()) {
  for (const ArbiterState::Quota& quota : now.quotas) limits_[quota.group] = quota.limit;
}

bool MachineWatch::IsDue(MonotonicTime now) const {
  return !looked_ || now - *looked_ >= kBetweenLooks;
}

void MachineWatch::Look(const ArbiterState& state, MonotonicTime now) {
  looked_ = now;
  LookAtCores(state.trainers);
  LookAtLimits(state.quotas);
}

void MachineWatch::LookAtCores(const std::vector<TrainerState>& trainers) {
  if (std::vector<int> now = AllowedCoreNumbers(); !now.empty() && now != cores_) {
    LogInfo("cores of the server changed", {{"before", CoreNumbersText(cores_)}, {"now", CoreNumbersText(now)}});
    cores_ = std::move(now);
  }
  std::map<std::int64_t, Trainer> seen;
  for (const TrainerState& trainer : trainers) {
    if (trainer.job == 0 || trainer.pid == 0) continue;
    Trainer& one = seen[trainer.job] = {.pid = trainer.pid, .cores = AllowedCoreNumbers(trainer.pid)};
    const auto known = trainers_.find(trainer.job);
    if (known == trainers_.end() || known->second.pid != trainer.pid) continue;
    // Those of one that has just ended cannot be told.
    if (one.cores.empty()) one.cores = known->second.cores;
    if (one.cores == known->second.cores) continue;
    LogInfo("cores of a trainer changed", {{"job", std::to_string(trainer.job)},
                                           {"before", CoreNumbersText(known->second.cores)},
                                           {"now", CoreNumbersText(one.cores)}});
  }
  trainers_ = std::move(seen);
}

void MachineWatch::LookAtLimits(const std::vector<ArbiterState::Quota>& quotas) {
  for (const ArbiterState::Quota& quota : quotas) {
    std::optional<CpuLimit>& known = limits_[quota.group];
    if (known == quota.limit) continue;
    const char* const what = !known ? "CPU limit set" : quota.limit ? "CPU limit changed" : "CPU limit lifted";
    LogInfo(what, {{"group", quota.group}, {"before", CoresOf(known)}, {"now", CoresOf(quota.limit)}});
    known = quota.limit;
  }
}

}  // namespace tandem::jobs
