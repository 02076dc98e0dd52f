#include "bench/interruption.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>
#include <utility>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "api/base/duration.h"
#include "api/base/errno_text.h"
#include "api/base/format.h"
#include "bench/context.h"
#include "colocation/arbiter.h"
#include "colocation/board_gate.h"
#include "loadgen/latency_histogram.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

// Between two requests, on average: the process has come to run again by then.
constexpr auto kPause = 3ms;
// Who has done nothing for so long stands still: much longer than another thread would keep it off its core.
constexpr auto kStill = 1ms;
// Who goes on for so long is not stopped at all; and who has not come to run again by then never will.
constexpr auto kTooLong = 90ms;
constexpr auto kNever = 10s;

// A process that counts, in memory that is shared with it, for as long as the object lives.
class Counting {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Counting>> Start() {
    void* const memory = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Fail(ErrorCode::kUnavailable, "no memory can be shared: {}", ErrnoText());
    auto* const counter = new (memory) Counter(0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      // Nothing here takes a lock: other threads of the parent may have held some.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const sched_param none{};
      ::sched_setscheduler(0, SCHED_IDLE, &none);
      for (;;) counter->fetch_add(1, std::memory_order_relaxed);
    }
    std::unique_ptr<Counting> counting(new Counting(counter, pid));
    if (pid < 0) return Fail(ErrorCode::kUnavailable, "no process can be started: {}", ErrnoText());
    counting->pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (counting->pidfd_ < 0) return Fail(ErrorCode::kUnavailable, "a process cannot be held: {}", ErrnoText());
    return counting;
  }
  ~Counting() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (pidfd_ >= 0) ::close(pidfd_);
    ::munmap(counter_, sizeof(Counter));
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  [[nodiscard]] int pidfd() const { return pidfd_; }
  // When it counted last, as far as can be seen; kUnavailable when it does not stop.
  [[nodiscard]] Result<MonotonicTime> WaitUntilItStands() const {
    const Clock& clock = RealClock::Instance();
    const MonotonicTime began = clock.Now();
    MonotonicTime last = began;
    std::uint64_t count = counter_->load(std::memory_order_relaxed);
    for (MonotonicTime now = began; now - last < kStill; now = clock.Now()) {
      const std::uint64_t seen = counter_->load(std::memory_order_relaxed);
      if (std::exchange(count, seen) != seen) last = now;
      if (now - began > kTooLong) return Fail(ErrorCode::kUnavailable, "a process was not stopped");
    }
    return last;
  }
  [[nodiscard]] Result<MonotonicTime> WaitUntilItCounts() const {
    const Clock& clock = RealClock::Instance();
    const MonotonicTime began = clock.Now();
    const std::uint64_t count = counter_->load(std::memory_order_relaxed);
    while (counter_->load(std::memory_order_relaxed) == count) {
      if (clock.Now() - began > kNever) return Fail(ErrorCode::kUnavailable, "a process was not let on");
    }
    return clock.Now();
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  Counting(Counter* counter, pid_t pid) : counter_(counter), pid_(pid) {}

  Counter* const counter_;
  const pid_t pid_;
  int pidfd_ = -1;
};

class Interruption final : public Measurement {
 public:
  [[nodiscard]] std::vector<std::string> series() const override { return {"stopped", "resumed"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;
};

Result<SeriesMap> Interruption::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const Clock& clock = RealClock::Instance();
  TANDEM_ASSIGN(const auto policy, MakeColocationPolicy("tandem"));
  TANDEM_ASSIGN(const auto counting, Counting::Start());
  TANDEM_ASSIGN(const auto board, TrainerBoard::Create());
  Arbiter arbiter(clock, *policy, {}, {.cores = 2, .all_cores = 2, .serving_threads = 2});
  BoardGate gate(*board, clock, [](int, int) {});
  gate.Announce(std::vector<OpInfo>(1));
  const auto lease = arbiter.Admit({.pidfd = counting->pidfd(), .board = board.get()});
  lease->SetGated({{0, kEveryModel}});
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("stopping in the middle of an operator: round {} of {}", round + 1, context.pace.rounds));
    TANDEM_TRY(context.CheckStop());
    loadgen::LatencyHistogram stopped;
    loadgen::LatencyHistogram resumed;
    for (const MonotonicTime end = clock.Now() + context.pace.window; clock.Now() < end || stopped.count() == 0;) {
      std::this_thread::sleep_for(kPause);
      gate.Begin(0);
      const MonotonicTime came = clock.Now();
      arbiter.RequestBegan();
      TANDEM_ASSIGN(const MonotonicTime stood, counting->WaitUntilItStands());
      const MonotonicTime went = clock.Now();
      arbiter.RequestEnded();
      TANDEM_ASSIGN(const MonotonicTime goes_on, counting->WaitUntilItCounts());
      stopped.Record(stood - came);
      resumed.Record(goes_on - went);
    }
    series["stopped"].samples.push_back(Seconds(stopped.Percentile(99)));
    series["resumed"].samples.push_back(Seconds(resumed.Percentile(99)));
  }
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseInterruption(JsonFields& /*fields*/, const std::vector<PeerSpec>& /*peers*/) {
  return std::make_unique<Interruption>();
}

}  // namespace tandem::bench
