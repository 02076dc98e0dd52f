#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "colocation/arbiter.h"
#include "colocation/job_turns.h"
#include "server/jobs/hold_watch.h"
#include "server/jobs/job_options.h"
#include "server/jobs/memory_group.h"
#include "server/jobs/trainer_process.h"
#include "server/trainer/run_file.h"

namespace tandem::jobs {

// How many threads a trainer of the job has; `fixed` is what one has that must always have as many.
[[nodiscard]] int ThreadsOf(const TrainingJob& job, const JobOptions& options, int fixed);

// How a trainer takes turns.
struct TurnPlan {
  TurnJob job;
  std::string owner;
  std::function<std::uint64_t(std::uint64_t needed)> grow;  // As a TurnTaker has it.
};

// A trainer within its bounds, whatever it is started for. The memory of its job is bounded by a control group where
// there is one; elsewhere by RLIMIT_DATA and by looking at what it holds. One that begins no operator for too long is
// killed. Used by the thread that started it, which must live as long as the trainer should.
class ContainedTrainer {
 public:
  // Writes the run file into the folder of the run and starts a trainer for it; where it reads data is set here.
  // `name` is that of its control group among those of this state: no two trainers have the same at a time. The options
  // and the clock are borrowed. `turn`: how it takes turns with others; nullopt: it runs beside them.
  [[nodiscard]] static Result<std::unique_ptr<ContainedTrainer>> Start(TrainerRun run, const std::string& name,
                                                                       const JobOptions& options, const Clock& clock,
                                                                       std::optional<TurnPlan> turn = std::nullopt);

  // What is lent to it, memory above all, is another's only once it has gone.
  ~ContainedTrainer();
  ContainedTrainer(const ContainedTrainer&) = delete;
  ContainedTrainer& operator=(const ContainedTrainer&) = delete;

  [[nodiscard]] TrainerProcess& process() { return *process_; }
  [[nodiscard]] const TrainerProcess& process() const { return *process_; }

  // Has it wait at its next operator, or go on; one that shares a lane at its next boundary.
  void Pause(bool pause);
  // Asks it to write a checkpoint and end. It is let on, so that it can.
  void Interrupt();
  // Which of its operators wait while heavy ones are held, and for requests of which models.
  void SetGated(const GatedPlaces& ops) {
    if (lease_) lease_->SetGated(ops);
  }
  // How long it took to do as it was told, so far. What it tells of that counts as far as it can be true; nothing goes
  // back.
  [[nodiscard]] AcknowledgementTimes Acknowledgements();
  // It has done so many of so many steps.
  void SetProgress(std::int64_t done, std::int64_t total) {
    if (turn_) turn_->SetProgress(done, total);
  }
  // How long the arbiter has stopped it so far, by reason; with that which its operators, and its iterations, waited.
  [[nodiscard]] std::map<HoldReason, std::chrono::nanoseconds> StoppedTimes() const;
  [[nodiscard]] std::map<HoldReason, std::chrono::nanoseconds> HeldTimes() const;

  // Kills it if it hangs or holds too much, and stops or kills it if it does not wait when it was told to; to be called
  // every now and then. One that waits because it was told to does not hang.
  void Watch();
  // What Watch() has just done because it did not wait; once.
  [[nodiscard]] HoldWatch::Verdict TakeIgnoredHold() { return std::exchange(ignored_hold_, HoldWatch::Verdict::kNone); }
  // What it wrote over its orders; they have been given anew. Told once: it may do so all the time.
  [[nodiscard]] std::optional<OverwrittenBoard> TakeOverwritten() { return std::exchange(overwritten_, std::nullopt); }
  // Its silence counts from now on.
  void CountFromNow() {
    watched_ = RunningTime();
    silent_ = std::chrono::nanoseconds(0);
  }

  // Whether Watch() has killed it: then its last words do not count.
  [[nodiscard]] bool killed() const { return !cause_.empty(); }
  // Why it has ended when it did not say so itself, or was killed.
  [[nodiscard]] Error WhyEnded(const TrainerExit& exit) const;

 private:
  ContainedTrainer(const JobOptions& options, const Clock& clock, std::optional<std::uint64_t> memory, bool fits,
                   std::unique_ptr<MemoryGroup> group, std::unique_ptr<TrainerProcess> process,
                   std::unique_ptr<TrainerLease> lease, std::unique_ptr<TurnLease> turn)
      : options_(options),
        clock_(clock),
        memory_(memory),
        fits_(fits),
        group_(std::move(group)),
        process_(std::move(process)),
        lease_(std::move(lease)),
        turn_(std::move(turn)),
        started_(clock.Now()) {}
  void Kill(std::string cause);
  // Has it wait at its next operator, or go on.
  void HoldAtOperators(bool hold);
  // Lets it on if it was stopped for not waiting.
  void Unstop();
  void RestoreOrders();
  void WatchHold(std::chrono::nanoseconds passed, bool held);
  // Since it was started, without the time that the arbiter has stopped it.
  [[nodiscard]] std::chrono::nanoseconds RunningTime() const;

  // Constant after construction.
  const JobOptions& options_;
  const Clock& clock_;
  const std::optional<std::uint64_t> memory_;  // Bytes that it may have.
  const bool fits_;                            // Into that, by a plan; what is mapped from files does not count then.
  const std::unique_ptr<MemoryGroup> group_;   // Null: there is none. Outlives what is in it.
  const std::unique_ptr<TrainerProcess> process_;
  const std::unique_ptr<TrainerLease> lease_;  // Null: nobody rules over it. Ends before the process is reaped.
  const std::unique_ptr<TurnLease> turn_;      // Null: it takes no turns. Ends before what it borrows.
  const MonotonicTime started_;

  AcknowledgementTimes told_;  // The last that it told and that can be true.
  std::string cause_;          // Why it was killed, when we did that.
  std::uint64_t ops_ = 0;
  std::chrono::nanoseconds watched_{0};  // Of its running time, at the last look.
  std::chrono::nanoseconds silent_{0};   // For so long it has given no sign.
  bool told_overwritten_ = false;
  bool told_turn_ = false;  // That it wrote over the word of its turns.
  std::optional<OverwrittenBoard> overwritten_;
  bool paused_ = false;
  HoldWatch hold_;
  bool stopped_ = false;  // By signal, because it did not wait.
  HoldWatch::Verdict ignored_hold_ = HoldWatch::Verdict::kNone;
};

}  // namespace tandem::jobs
