#include "bench/job_turns.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "api/base/clock.h"
#include "api/base/duration.h"
#include "api/base/format.h"
#include "bench/context.h"
#include "bench/job_server.h"
#include "colocation/job_policy.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kPoll = 50ms;
constexpr auto kPatience = 30min;
// Until every job has had a turn.
constexpr auto kSettling = 5min;
// Until iterations in which jobs were paused are over.
constexpr auto kSettled = 3s;
constexpr int kMostSeconds = 600;
constexpr const char* kFigures[] = {"completion", "makespan"};

class JobTurnsCompared final : public Measurement {
 public:
  JobTurnsCompared(std::vector<JobMix> mixes, std::vector<std::string> policies)
      : mixes_(std::move(mixes)), policies_(std::move(policies)) {}

  [[nodiscard]] std::vector<std::string> series() const override;
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  struct Outcome {
    double completion = 0;
    double makespan = 0;
  };
  [[nodiscard]] Result<Outcome> RunUnder(const std::string& policy, BenchContext& context) const;

  const std::vector<JobMix> mixes_;
  const std::vector<std::string> policies_;
};

std::vector<std::string> JobTurnsCompared::series() const {
  std::vector<std::string> names;
  for (const std::string figure : kFigures) {
    for (const std::string& policy : policies_) names.push_back(Format("{}.{}", policy, figure));
  }
  return names;
}

Result<JobTurnsCompared::Outcome> JobTurnsCompared::RunUnder(const std::string& policy, BenchContext& context) const {
  TANDEM_ASSIGN(const auto server, JobServer::Start(context, mixes_, {"--job-policy", policy}));
  const Clock& clock = RealClock::Instance();
  const MonotonicTime began = clock.Now();
  TANDEM_ASSIGN(const std::vector<std::int64_t> jobs, server->Submit(mixes_));
  std::map<std::int64_t, double> ended;
  while (ended.size() < jobs.size()) {
    TANDEM_TRY(context.CheckStop());
    TANDEM_ASSIGN(const auto states, server->States());
    const MonotonicTime now = clock.Now();
    for (const auto& [job, state] : states) {
      if (state == "succeeded") ended.try_emplace(job, Seconds(now - began));
    }
    if (now - began > kPatience) return Fail(ErrorCode::kInternal, "{}: jobs have not ended in half an hour", policy);
    std::this_thread::sleep_for(kPoll);
  }
  Outcome outcome;
  for (const auto& [job, seconds] : ended) {
    outcome.completion += seconds / static_cast<double>(ended.size());
    outcome.makespan = std::max(outcome.makespan, seconds);
  }
  return outcome;
}

Result<SeriesMap> JobTurnsCompared::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    std::vector<std::string> order = policies_;
    // So that none is always after the same one.
    if (round % 2 == 1) std::ranges::reverse(order);
    for (const std::string& policy : order) {
      context.say(Format("jobs under {}, round {} of {}", policy, round + 1, context.pace.rounds));
      TANDEM_ASSIGN(const Outcome outcome, RunUnder(policy, context));
      series[policy + ".completion"].samples.push_back(outcome.completion);
      series[policy + ".makespan"].samples.push_back(outcome.makespan);
    }
  }
  return series;
}

class JobsAtOnce final : public Measurement {
 public:
  JobsAtOnce(std::vector<JobMix> mixes, std::string policy, std::string memory, int seconds)
      : mixes_(std::move(mixes)), policy_(std::move(policy)), memory_(std::move(memory)), seconds_(seconds) {}

  [[nodiscard]] std::vector<std::string> series() const override {
    return {"progressed", "spread", "memory", "switch_p50", "switch_p99"};
  }
  [[nodiscard]] Result<SeriesMap> Run(BenchContext& context, const std::set<std::string>& wanted) const override;

 private:
  struct Had {
    std::map<std::int64_t, double> ran;  // Seconds, by job.
    std::map<std::int64_t, std::int64_t> steps;
    Json::Value turns;
  };
  [[nodiscard]] static Result<Had> Look(const JobServer& server);
  // Until every job has had a turn and made a step.
  [[nodiscard]] static Result<Had> Settle(const JobServer& server, std::size_t jobs, const BenchContext& context);
  Status Round(BenchContext& context, SeriesMap& series) const;

  const std::vector<JobMix> mixes_;
  const std::string policy_;
  const std::string memory_;
  const int seconds_;
};

Result<JobsAtOnce::Had> JobsAtOnce::Look(const JobServer& server) {
  Had had;
  TANDEM_ASSIGN(had.turns, server.Get("/v2/train/turns"));
  for (const Json::Value& job : had.turns["jobs"]) had.ran[job["job"].asInt64()] = job["ran_seconds"].asDouble();
  TANDEM_ASSIGN(const Json::Value page, server.Get("/v2/train/jobs?limit=1000"));
  for (const Json::Value& job : page["jobs"]) had.steps[job["id"].asInt64()] = job["progress"]["step"].asInt64();
  return had;
}

Result<JobsAtOnce::Had> JobsAtOnce::Settle(const JobServer& server, std::size_t jobs, const BenchContext& context) {
  const MonotonicTime until = RealClock::Instance().Now() + kSettling;
  for (;;) {
    TANDEM_TRY(context.CheckStop());
    TANDEM_TRY(server.States());
    TANDEM_ASSIGN(Had had, Look(server));
    const bool all =
        had.ran.size() == jobs && std::ranges::all_of(had.steps, [](const auto& job) { return job.second > 0; });
    // Those that are not there by then do not progress, which is what is measured.
    if (all || RealClock::Instance().Now() > until) return had;
    std::this_thread::sleep_for(kPoll);
  }
}

Status JobsAtOnce::Round(BenchContext& context, SeriesMap& series) const {
  TANDEM_ASSIGN(const auto server, JobServer::Start(context, mixes_, {"--job-policy", policy_, "--memory", memory_}));
  TANDEM_ASSIGN(const std::vector<std::int64_t> jobs, server->Submit(mixes_));
  TANDEM_TRY(Settle(*server, jobs.size(), context));
  // Those that came first are ahead of the others; who comes back from a pause is not.
  TANDEM_TRY(server->Tell(jobs, "pause"));
  TANDEM_TRY(server->Tell(jobs, "resume"));
  std::this_thread::sleep_for(kSettled);
  TANDEM_ASSIGN(const Had before, Look(*server));
  std::uint64_t held = 0;
  for (int second = 0; second < seconds_; ++second) {
    TANDEM_TRY(context.CheckStop());
    std::this_thread::sleep_for(1s);
    TANDEM_ASSIGN(const std::uint64_t now, server->HeldBytes());
    held = std::max(held, now);
  }
  TANDEM_ASSIGN(const Had after, Look(*server));
  TANDEM_ASSIGN(const Json::Value memory, server->Get("/v2/memory"));
  int progressed = 0;
  std::vector<double> ran;
  for (const std::int64_t job : jobs) {
    const auto of = [job](const auto& map) { return map.contains(job) ? map.at(job) : 0; };
    if (of(after.steps) > of(before.steps)) ++progressed;
    ran.push_back(static_cast<double>(of(after.ran)) - static_cast<double>(of(before.ran)));
  }
  const double mean = std::accumulate(ran.begin(), ran.end(), 0.0) / static_cast<double>(ran.size());
  const auto [least, most] = std::ranges::minmax(ran);
  series["progressed"].samples.push_back(static_cast<double>(progressed) / static_cast<double>(jobs.size()));
  series["spread"].samples.push_back(mean > 0 ? (most - least) / mean : 1);
  series["memory"].samples.push_back(static_cast<double>(held) / memory["budget_bytes"].asDouble());
  for (const char* percentile : {"p50", "p99"}) {
    const Json::Value& micros = after.turns["switch_us"][percentile];
    if (micros.isNumeric()) series[Format("switch_{}", percentile)].samples.push_back(micros.asDouble() / 1e6);
  }
  return {};
}

Result<SeriesMap> JobsAtOnce::Run(BenchContext& context, const std::set<std::string>& /*wanted*/) const {
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("jobs at once under {}, round {} of {}", policy_, round + 1, context.pace.rounds));
    TANDEM_TRY(Round(context, series));
  }
  for (const std::string& name : this->series()) {
    if (series[name].samples.empty()) series[name].not_run = "no turn went from one job to another";
  }
  return series;
}

}  // namespace

Result<std::unique_ptr<Measurement>> ParseJobTurns(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::vector<JobMix> mixes, ParseJobMixes(fields, /*ending=*/true));
  TANDEM_ASSIGN(std::vector<std::string> policies, fields.Texts("policies"));
  for (const std::string& policy : policies) {
    const auto known = MakeJobPolicy(policy);
    if (!known) return Invalid("{}: {}", fields.At("policies"), known.error().message);
  }
  return std::make_unique<JobTurnsCompared>(std::move(mixes), std::move(policies));
}

Result<std::unique_ptr<Measurement>> ParseJobsAtOnce(JsonFields& fields, const std::vector<PeerSpec>& /*peers*/) {
  TANDEM_ASSIGN(std::vector<JobMix> mixes, ParseJobMixes(fields, /*ending=*/false));
  TANDEM_ASSIGN(std::string policy, fields.Text("policy"));
  const auto known = MakeJobPolicy(policy);
  if (!known) return Invalid("{}: {}", fields.At("policy"), known.error().message);
  TANDEM_ASSIGN(std::string memory, fields.TextOr("memory", "80%"));
  TANDEM_ASSIGN(const int seconds, fields.Whole("seconds", 1, kMostSeconds));
  return std::make_unique<JobsAtOnce>(std::move(mixes), std::move(policy), std::move(memory), seconds);
}

}  // namespace tandem::bench
