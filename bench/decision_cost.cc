#include "bench/decision_cost.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include "api/base/clock.h"
#include "api/base/duration.h"
#include "api/base/errno_text.h"
#include "api/base/format.h"
#include "bench/child_process.h"
#include "bench/context.h"
#include "colocation/arbiter.h"
#include "colocation/board_gate.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kMostTrainers = 256;
constexpr int kMostRequests = 100'000;
constexpr auto kPeriod = 100ms;
// Between requests that come and those that go: time to decide.
constexpr auto kPause = 1ms;
constexpr int kOperators = 1000;

// A limit of one core over a group that may have none: its use is real, its periods lie on a grid of the clock.
class MadeUpLimit final : public CpuLimitMeter {
 public:
  explicit MadeUpLimit(std::unique_ptr<CpuLimitMeter> group) : group_(std::move(group)) {}
  [[nodiscard]] std::string name() const override { return group_->name(); }
  [[nodiscard]] std::optional<CpuLimit> Limit() override { return CpuLimit{.quota = kPeriod, .period = kPeriod}; }
  [[nodiscard]] Result<CpuUse> Use() override {
    TANDEM_ASSIGN(CpuUse use, group_->Use());
    use.periods = static_cast<std::uint64_t>(RealClock::Instance().Now().time_since_epoch() / kPeriod);
    return use;
  }
  [[nodiscard]] Result<std::chrono::nanoseconds> Used() override { return group_->Used(); }

 private:
  const std::unique_ptr<CpuLimitMeter> group_;
};

// A process to be stopped, and what the arbiter has of it.
struct Trainer {
  std::unique_ptr<ChildProcess> process;
  int pidfd = -1;
  std::unique_ptr<TrainerBoard> board;
  std::unique_ptr<TrainerLease> lease;

  Trainer() = default;
  Trainer(Trainer&& other) noexcept
      : process(std::move(other.process)),
        pidfd(std::exchange(other.pidfd, -1)),
        board(std::move(other.board)),
        lease(std::move(other.lease)) {}
  Trainer& operator=(Trainer&&) = delete;
  ~Trainer() {
    lease.reset();
    if (pidfd >= 0) ::close(pidfd);
  }
};

Result<Trainer> StartTrainer(const BenchContext& context, Arbiter& arbiter) {
  Trainer trainer;
  TANDEM_ASSIGN(trainer.process,
                ChildProcess::Start({.words = {"sleep", "infinity"}, .log = context.work / "decision.log"}));
  trainer.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, trainer.process->pid(), 0));
  if (trainer.pidfd < 0) return Fail(ErrorCode::kUnavailable, "a process cannot be held: {}", ErrnoText());
  TANDEM_ASSIGN(trainer.board, TrainerBoard::Create());
  trainer.lease = arbiter.Admit({.pidfd = trainer.pidfd, .board = trainer.board.get()});
  trainer.lease->SetGated({{0, kEveryModel}});
  return trainer;
}

double Percentile99(const DecisionTimes& before, const DecisionTimes& after) {
  const double most = 0.99 * static_cast<double>(after.count() - before.count());
  double seen = 0;
  for (std::size_t i = 0; i < DecisionTimes::kBounds.size(); ++i) {
    seen += static_cast<double>(after.counts[i] - before.counts[i]);
    if (seen >= most) return Seconds(DecisionTimes::kBounds[i]);
  }
  return Seconds(after.sum - before.sum);
}

class Decision final : public Measurement {
 public:
  Decision(int trainers, int requests, bool limited) : trainers_(trainers), requests_(requests), limited_(limited) {}

  [[nodiscard]] std::vector<std::string> series() const override { return {"decided", "applied"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  void ComeAndGo(Arbiter& arbiter, std::chrono::nanoseconds time) const {
    const Clock& clock = RealClock::Instance();
    for (const MonotonicTime end = clock.Now() + time; clock.Now() < end;) {
      for (int i = 0; i < requests_; ++i) arbiter.RequestBegan();
      std::this_thread::sleep_for(kPause);
      for (int i = 0; i < requests_; ++i) arbiter.RequestEnded();
      std::this_thread::sleep_for(kPause);
    }
  }

  const int trainers_;
  const int requests_;
  const bool limited_;
};

Result<SeriesMap> Decision::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  TANDEM_ASSIGN(const auto policy, MakeColocationPolicy("tandem"));
  SeriesMap series;
  CpuLimitMeters limits;
  if (limited_) {
    CpuLimitMeters own = OpenCpuLimits();
    if (own.meters.empty()) {
      for (const std::string& name : this->series()) series[name].not_run = "this process's CPU time cannot be read";
      return series;
    }
    limits.meters.push_back(std::make_unique<MadeUpLimit>(std::move(own.meters.front())));
  }
  const auto recorder = std::make_unique<FlightRecorder>(1024);
  Arbiter arbiter(RealClock::Instance(), *policy, std::move(limits), {.cores = 2, .all_cores = 2, .serving_threads = 2},
                  recorder.get());
  std::vector<Trainer> trainers;
  for (int i = 0; i < trainers_; ++i) {
    TANDEM_ASSIGN(auto trainer, StartTrainer(context, arbiter));
    trainers.push_back(std::move(trainer));
  }
  ComeAndGo(arbiter, 3s);  // Until periods and demand are known.
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("decisions about {} trainers: round {} of {}", trainers_, round + 1, context.pace.rounds));
    TANDEM_TRY(context.CheckStop());
    const ArbiterState before = arbiter.State();
    ComeAndGo(arbiter, context.pace.window);
    const ArbiterState after = arbiter.State();
    series["decided"].samples.push_back(Percentile99(before.decisions, after.decisions));
    series["applied"].samples.push_back(Percentile99(before.applied, after.applied));
  }
  return series;
}

class Gate final : public Measurement {
 public:
  [[nodiscard]] std::vector<std::string> series() const override { return {"operator", "gate"}; }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;
};

Result<SeriesMap> Gate::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  const Clock& clock = RealClock::Instance();
  const FakeClock still;
  const std::vector<OpInfo> ops(100);
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("the gate before an operator: round {} of {}", round + 1, context.pace.rounds));
    TANDEM_TRY(context.CheckStop());
    for (const bool real : {true, false}) {
      TANDEM_ASSIGN(const auto board, TrainerBoard::Create());
      TANDEM_ASSIGN(const auto sign, ServingSign::Create());
      const auto same_threads = [](int, int) {};
      BoardGate gate(*board, real ? clock : still, same_threads, sign.get());
      gate.Announce(ops);
      const MonotonicTime began = clock.Now();
      std::uint64_t asked = 0;
      MonotonicTime now = began;
      for (; now - began < context.pace.window / 2; now = clock.Now()) {
        for (int i = 0; i < kOperators; ++i) gate.Begin(static_cast<std::size_t>(i) % ops.size());
        asked += kOperators;
      }
      series[real ? "operator" : "gate"].samples.push_back(Seconds(now - began) / static_cast<double>(asked));
    }
  }
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseDecision(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(const int trainers, fields.Whole("trainers", 1, kMostTrainers));
  TANDEM_ASSIGN(const int requests, fields.Whole("requests", 1, kMostRequests));
  TANDEM_ASSIGN(const bool limited, fields.FlagOr("limited", false));
  return std::make_unique<Decision>(trainers, requests, limited);
}

Result<std::unique_ptr<Measurement>> ParseGate(JsonFields& /*fields*/, const std::vector<PeerSpec>& /*peers*/) {
  return std::make_unique<Gate>();
}

}  // namespace tandem::bench
