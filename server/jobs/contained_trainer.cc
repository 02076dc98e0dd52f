#include "server/jobs/contained_trainer.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include <sys/stat.h>

#include "api/base/format.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

// Of the time between two looks no more counts as silence: when the server stood still for longer, so did the trainer
// (a container that was paused, a machine that was), or had nobody to give a sign to.
constexpr std::chrono::seconds kMostBetweenLooks{1};

// The same for every server of a state folder, and another for those of others.
std::string GroupName(const std::filesystem::path& state, const std::string& name) {
  struct stat status {};
  (void)::stat(state.c_str(), &status);
  return Format("tandem-{}-{}-{}", status.st_dev, status.st_ino, name);
}

// Null where there is to be none, or none can be had: then the trainer is bounded by other means.
std::unique_ptr<MemoryGroup> GroupFor(const std::string& name, const JobOptions& options,
                                      std::optional<std::uint64_t> memory) {
  if (!memory || options.memory_groups.empty()) return nullptr;
  auto group = MemoryGroup::Make(options.memory_groups, GroupName(options.state, name), *memory);
  if (group) return *std::move(group);
  LogWarning("a trainer is started without a control group", {{"trainer", name}, {"reason", group.error().message}});
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<ContainedTrainer>> ContainedTrainer::Start(TrainerRun run, const std::string& name,
                                                                  const JobOptions& options, const Clock& clock) {
  run.data_root = options.data_root;
  run.threads = run.job.threads > 0 ? run.job.threads : run.job.deterministic ? options.fixed_threads : options.threads;
  const std::filesystem::path run_file = run.folder / "run.json";
  TANDEM_TRY(WriteRunFile(run, run_file));
  const int threads = run.threads;
  const std::optional<std::uint64_t> memory = run.job.memory;
  auto group = GroupFor(name, options, memory);
  TANDEM_ASSIGN(auto process, TrainerProcess::Start({.program = options.trainer,
                                                     .run_file = run_file,
                                                     .folder = run.folder,
                                                     .memory = group ? std::nullopt : memory,
                                                     .memory_group = group ? group->door() : -1,
                                                     .rank = options.rank,
                                                     .thrifty = options.thrifty,
                                                     .cores = options.cores}));
  if (options.rank == TrainerClass::kIdle && !process->yields()) {
    LogWarning("a trainer cannot be put into the kernel's idle class: it stands still while requests are under way",
               {{"trainer", name}});
  }
  std::unique_ptr<TrainerLease> lease;
  if (options.arbiter != nullptr && process->pidfd() >= 0) {
    lease = options.arbiter->Admit({.pidfd = process->pidfd(),
                                    .board = &process->board(),
                                    .threads = threads,
                                    .yields = process->yields(),
                                    .job = run.number,
                                    .pid = process->pid()});
  } else if (options.arbiter != nullptr && options.arbiter->holds()) {
    LogWarning("a trainer cannot be stopped for requests: there is no descriptor of its process", {{"trainer", name}});
  }
  return std::unique_ptr<ContainedTrainer>(
      new ContainedTrainer(options, clock, memory, std::move(group), std::move(process), std::move(lease)));
}

void ContainedTrainer::Unstop() {
  if (std::exchange(stopped_, false)) process_->Stop(false);
}

void ContainedTrainer::Pause(bool pause) {
  if (!pause) Unstop();
  paused_at_ = pause ? std::optional(clock_.Now()) : std::nullopt;
  if (lease_) {
    lease_->SetPaused(pause);
  } else {
    process_->board().Set(pause ? Permit::kHold : Permit::kRun, clock_.Now());
  }
}

void ContainedTrainer::Interrupt() {
  Unstop();
  paused_at_.reset();
  if (lease_) {
    lease_->SetExempt();
  } else {
    process_->board().Set(Permit::kRun, clock_.Now());
  }
  process_->Interrupt();
}

std::map<HoldReason, std::chrono::nanoseconds> ContainedTrainer::StoppedTimes() const {
  if (!lease_) return {};
  return lease_->HeldTimes();
}

std::map<HoldReason, std::chrono::nanoseconds> ContainedTrainer::HeldTimes() const {
  auto times = StoppedTimes();
  // It tells this itself: never more than there was.
  if (const auto gated = process_->board().Signs().gated; gated > std::chrono::nanoseconds(0)) {
    times[HoldReason::kRequests] += std::min<std::chrono::nanoseconds>(gated, clock_.Now() - started_);
  }
  return times;
}

AcknowledgementTimes ContainedTrainer::Acknowledgements() const {
  AcknowledgementTimes times = process_->board().Acknowledgements();
  if (lease_) times += lease_->Interruptions();
  return times;
}

void ContainedTrainer::Kill(std::string cause) {
  if (killed()) return;
  cause_ = std::move(cause);
  process_->Kill();
}

std::chrono::nanoseconds ContainedTrainer::RunningTime() const {
  std::chrono::nanoseconds time = clock_.Now() - started_;
  for (const auto& [reason, held] : StoppedTimes()) time -= held;
  return time;
}

void ContainedTrainer::Watch() {
  const std::chrono::nanoseconds running = RunningTime();
  const TrainerSigns signs = process_->board().Signs();
  if (paused_at_ && !signs.held && !stopped_ && clock_.Now() - *paused_at_ >= kHoldBound) {
    process_->Stop(true);
    stopped_ = ignored_hold_ = true;
  }
  silent_ += std::min<std::chrono::nanoseconds>(running - watched_, kMostBetweenLooks);
  watched_ = running;
  if (signs.ops != ops_ || signs.held || stopped_) silent_ = std::chrono::nanoseconds(0);
  ops_ = signs.ops;
  if (lease_ && lease_->lost() && !process_->Poll() && !std::exchange(told_unruled_, true)) {
    LogWarning("a trainer cannot be stopped for requests: it may not be signalled",
               {{"pid", std::to_string(process_->pid())}});
  }
  if (silent_ >= options_.hang_limit) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.hang_limit);
    Kill(Format("its trainer did nothing for {} s and was killed", seconds.count()));
  }
  if (!memory_ || group_) return;
  if (const std::uint64_t held = process_->ResidentBytes(); held > *memory_) {
    Kill(Format("out of memory: its trainer held {} bytes, and the limit of the job is {} bytes (/memory)", held,
                *memory_));
  }
}

Error ContainedTrainer::WhyEnded(const TrainerExit& exit) const {
  if (killed()) return {ErrorCode::kInternal, cause_};
  if (group_ && group_->HasKilled()) {
    return {
        ErrorCode::kInternal,
        Format("out of memory: the kernel ended its trainer; the limit of the job is {} bytes (/memory)", *memory_)};
  }
  return {ErrorCode::kInternal, "its trainer ended: " + exit.Words()};
}

}  // namespace tandem::jobs
