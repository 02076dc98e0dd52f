#include "server/jobs/contained_trainer.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <utility>

#include <sys/stat.h>

#include "api/base/format.h"
#include "server/log/log.h"

namespace tandem::jobs {
namespace {

// Of the time between two looks no more counts as silence, or as disobedience: when the server stood still for longer,
// so did the trainer (a container that was paused, a machine that was), or had nobody to give a sign to.
constexpr std::chrono::seconds kMostBetweenLooks{1};

// The same for every server of a state folder, and another for those of others.
std::string GroupName(const std::filesystem::path& state, const std::string& name) {
  struct stat status{};
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

// Whether it keeps within its memory by a plan, which counts what no file stands behind.
bool Fits(const TrainerRun& run) {
  return run.job.fit && !run.limit;
}

// The limit on data that holds a trainer to its memory where no control group does. It also counts what libraries set
// aside and never touch, several hundred megabytes, for which a plan that fits to the byte leaves no room: such a job
// is held to its bound by what it holds alone, and to this for the worst.
std::optional<std::uint64_t> DataLimit(const TrainerRun& run, std::optional<std::uint64_t> memory) {
  constexpr std::uint64_t kSetAside = std::uint64_t{1} << 30;
  return memory && Fits(run) ? *memory + kSetAside : memory;
}

// What the kernel does not allow for one trainer it allows for none: the log is told once.
void TellOfFallbacks(const TrainerProcess& process, const JobOptions& options) {
  static std::once_flag not_idle;
  static std::once_flag not_pinned;
  if (options.rank == TrainerClass::kIdle && !process.yields()) {
    std::call_once(not_idle, [] {
      LogWarning("trainers cannot be put into the kernel's idle class: they stand still while requests are under way");
    });
  }
  if (!process.unpinned().empty()) {
    std::call_once(not_pinned, [&] {
      LogWarning("trainers cannot be kept to the cores for training: they run on those for requests",
                 {{"reason", process.unpinned()}});
    });
  }
}

// The same for what holds them.
void TellOfMeans(HoldMeans means) {
  static std::once_flag by_pid;
  static std::once_flag by_board;
  if (means == HoldMeans::kPid) {
    std::call_once(by_pid, [] {
      LogWarning("trainers cannot be stopped through descriptors of their processes: signals go to their process IDs");
    });
  } else if (means == HoldMeans::kBoard) {
    std::call_once(by_board, [] {
      LogWarning("trainers may not be signalled: they are not stopped at once, but wait at their next operators");
    });
  }
}

}  // namespace

int ThreadsOf(const TrainingJob& job, const JobOptions& options, int fixed) {
  if (job.threads > 0) return job.threads;
  // With other threads an operator may add up in another order.
  return job.deterministic ? fixed : options.threads;
}

Result<std::unique_ptr<ContainedTrainer>> ContainedTrainer::Start(TrainerRun run, const std::string& name,
                                                                  const JobOptions& options, const Clock& clock,
                                                                  std::optional<TurnPlan> turn) {
  run.data_root = options.data_root;
  const std::filesystem::path run_file = run.folder / "run.json";
  TANDEM_TRY(WriteRunFile(run, run_file));
  const int threads = run.threads;
  const std::optional<std::uint64_t> memory = run.limit ? run.limit : run.job.memory;
  auto group = GroupFor(name, options, memory);
  const bool takes_turns = turn && options.turns != nullptr;
  int lane = -1;
  if (takes_turns && turn->grow) {
    TANDEM_ASSIGN(lane, options.turns->OpenLane(turn->job.lane));
  }
  TANDEM_ASSIGN(auto process, TrainerProcess::Start({.program = options.trainer,
                                                     .run_file = run_file,
                                                     .folder = run.folder,
                                                     .memory = group ? std::nullopt : DataLimit(run, memory),
                                                     .memory_group = group ? group->door() : -1,
                                                     .lane = lane,
                                                     .takes_turns = takes_turns,
                                                     .sign = options.sign,
                                                     .rank = options.rank,
                                                     .thrifty = options.thrifty,
                                                     .cores = options.cores}));
  TellOfFallbacks(*process, options);
  std::unique_ptr<TrainerLease> lease;
  if (options.arbiter != nullptr) {
    lease = options.arbiter->Admit({.pidfd = process->pidfd(),
                                    .board = &process->board(),
                                    .threads = threads,
                                    .yields = process->yields(),
                                    .job = run.number,
                                    .pid = process->pid()});
  }
  std::unique_ptr<TurnLease> turns;
  if (takes_turns) {
    turns = options.turns->Admit({.job = turn->job,
                                  .board = &process->board(),
                                  .bell = process->bell(),
                                  .pidfd = process->pidfd(),
                                  .ruled = lease.get(),
                                  .owner = std::move(turn->owner),
                                  .grow = std::move(turn->grow)});
  }
  return std::unique_ptr<ContainedTrainer>(new ContainedTrainer(
      options, clock, memory, Fits(run), std::move(group), std::move(process), std::move(lease), std::move(turns)));
}

ContainedTrainer::~ContainedTrainer() {
  // Who may not be killed is asked.
  if (!process_->Kill()) Interrupt();
  process_->End();
}

void ContainedTrainer::Unstop() {
  if (std::exchange(stopped_, false)) process_->Stop(false);
}

void ContainedTrainer::Pause(bool pause) {
  paused_ = pause;
  if (turn_) turn_->SetPaused(pause);
  HoldAtOperators(pause && !(turn_ && turn_->in_lane()));
}

void ContainedTrainer::HoldAtOperators(bool hold) {
  if (hold) {
    hold_.Begin();
  } else {
    Unstop();
    hold_.End();
  }
  if (lease_) {
    lease_->SetPaused(hold);
  } else {
    process_->board().Set(hold ? Permit::kHold : Permit::kRun, clock_.Now());
  }
}

void ContainedTrainer::Interrupt() {
  Unstop();
  hold_.End();
  if (lease_) {
    lease_->SetExempt();
  } else {
    process_->board().Set(Permit::kRun, clock_.Now());
  }
  process_->Interrupt();
  // After the signal: who hears that it is to begin no iteration more knows why.
  if (turn_) turn_->End();
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
  if (turn_) times[HoldReason::kTurn] = turn_->waited();
  return times;
}

AcknowledgementTimes ContainedTrainer::Acknowledgements() {
  const TrainerBoard& board = process_->board();
  const AcknowledgementTimes told = board.Acknowledgements();
  if (told.CanFollow(told_, board.permits_given(), clock_.Now() - started_)) told_ = told;
  AcknowledgementTimes times = told_;
  if (lease_) times += lease_->Stops();
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

void ContainedTrainer::RestoreOrders() {
  if (turn_ && turn_->Restore() && !std::exchange(told_turn_, true)) {
    LogWarning("a trainer has overwritten the word of its turns: it is given anew, now and whenever it does so again",
               {{"pid", std::to_string(process_->pid())}});
  }
  const auto overwritten = lease_ ? lease_->RestoreOrders() : process_->board().Restore();
  if (!overwritten || std::exchange(told_overwritten_, true)) return;
  overwritten_ = overwritten;
  LogWarning("a trainer has overwritten its orders: they are given anew, now and whenever it does so again",
             {{"pid", std::to_string(process_->pid())},
              {"found", std::to_string(overwritten->found.orders)},
              {"given", std::to_string(overwritten->given.orders)}});
}

void ContainedTrainer::WatchHold(std::chrono::nanoseconds passed, bool held) {
  if (!hold_.on()) return;
  ignored_hold_ = hold_.Judge({.passed = passed, .held = held, .used = process_->CpuTime()});
  if (ignored_hold_ == HoldWatch::Verdict::kStop) {
    process_->Stop(true);
    stopped_ = true;
  } else if (ignored_hold_ == HoldWatch::Verdict::kKill) {
    Kill("its trainer did not wait when it was told to, for the second time, and was killed");
  }
}

void ContainedTrainer::Watch() {
  RestoreOrders();
  if (turn_ && turn_->blocks()) {
    Kill("its trainer did not come to the end of an iteration in time, and was killed: others wait for its lane");
  }
  // It has come to share a lane since it was paused.
  if (paused_ && hold_.on() && turn_ && turn_->in_lane()) HoldAtOperators(false);
  const std::chrono::nanoseconds running = RunningTime();
  const TrainerSigns signs = process_->board().Signs();
  const auto passed = std::min<std::chrono::nanoseconds>(running - std::exchange(watched_, running), kMostBetweenLooks);
  WatchHold(passed, signs.held);
  silent_ += passed;
  // That it waits is its own word, and believed only where it may wait for long.
  const bool waits = (hold_.on() && (signs.held || stopped_)) || (turn_ && turn_->waits());
  if (signs.ops != ops_ || waits) silent_ = std::chrono::nanoseconds(0);
  ops_ = signs.ops;
  if (lease_ && options_.arbiter->holds()) TellOfMeans(lease_->means());
  if (silent_ >= options_.hang_limit) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.hang_limit);
    Kill(Format("its trainer did nothing for {} s and was killed", seconds.count()));
  }
  if (!memory_ || group_) return;
  if (const std::uint64_t held = fits_ ? process_->AnonymousBytes() : process_->ResidentBytes(); held > *memory_) {
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
