#include "server/cli/demo_training.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/base/format.h"
#include "server/cli/demo_digits.h"
#include "server/cli/train_watch.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::milliseconds kLook{100};

// The numbers of one series.
std::vector<double> ValuesIn(const Json::Value& metrics, const char* name) {
  std::vector<double> values;
  if (!metrics.isObject() || !metrics[name].isObject() || !metrics[name]["values"].isArray()) return values;
  for (const Json::Value& value : metrics[name]["values"]) {
    if (value.isNumeric()) values.push_back(value.asDouble());
  }
  return values;
}

}  // namespace

std::string DigitsJob(const std::string& data, int steps, bool publish) {
  constexpr int kEvaluations = 20;
  return Format(R"({{"name": "demo", "model": "{}", "data": "{}", "steps": {}, "batch_size": 32, )"
                R"("optimizer": {{"kind": "adamw", "lr": 0.002}}, "evaluation": {{"split": 0.1, )"
                R"("every_steps": {}}}, "publish": "{}", "seed": 1, "threads": 1}})",
                kDigitsModel, data, steps, std::max(1, steps / kEvaluations), publish ? "if_better" : "never");
}

Result<std::unique_ptr<DemoTraining>> DemoTraining::Submit(int port, const std::string& job) {
  TANDEM_ASSIGN(auto client, ApiClient::Connect({.url = Format("http://127.0.0.1:{}", port)}));
  TANDEM_ASSIGN(const Json::Value answer, client->Post("/v2/train/jobs", job));
  TANDEM_ASSIGN(JobView view, ReadJobView(answer));
  return std::unique_ptr<DemoTraining>(new DemoTraining(std::move(client), std::move(view)));
}

DemoTraining::DemoTraining(std::unique_ptr<ApiClient> client, JobView job) : client_(std::move(client)) {
  {
    const MutexLock lock(mu_);
    seen_.job = std::move(job);
  }
  watcher_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
}

TrainingStatus DemoTraining::Seen() const {
  const MutexLock lock(mu_);
  return seen_;
}

void DemoTraining::Watch(const std::stop_token& stop) {
  while (!stop.stop_requested() && !Look()) std::this_thread::sleep_for(kLook);
}

bool DemoTraining::Look() {
  const auto answer = client_->Get(Format("/v2/train/jobs/{}", Seen().job.id));
  const auto job = answer ? ReadJobView(*answer) : Result<JobView>(std::unexpected(answer.error()));
  if (!job) {
    if (patience_.Bears(job.error(), RealClock::Instance().Now())) return false;
    Decide("its job cannot be asked for: " + job.error().message);
    return true;
  }
  patience_.Heard();
  const bool evaluated = job->metric != Seen().job.metric;
  TakeIn(*job);
  if (evaluated || job->has_ended()) (void)ReadSeries(job->id);  // The next time shows what could not be read now.
  if (!job->has_ended()) return false;
  if (job->state != "succeeded") {
    Decide(Format("job {} {}: {}", job->id, job->state, PrintableLines(job->reason)));
    return true;
  }
  const auto outcome = PublishOutcome(*client_, *job);
  if (!outcome) {
    Decide("what became of its result cannot be asked for: " + outcome.error().message);
    return true;
  }
  if (!*outcome) return false;
  Decide(**outcome);
  return true;
}

void DemoTraining::TakeIn(const JobView& job) {
  const MonotonicTime now = RealClock::Instance().Now();
  const MutexLock lock(mu_);
  if (job.step > 0 && (!first_ || job.step < first_->step)) first_ = FirstStep{.time = now, .step = job.step};
  if (first_ && job.step > seen_.job.step && job.step > first_->step) {
    seen_.steps_per_second =
        static_cast<double>(job.step - first_->step) / std::chrono::duration<double>(now - first_->time).count();
  }
  seen_.job = job;
}

Status DemoTraining::ReadSeries(std::int64_t job) {
  TANDEM_ASSIGN(const Json::Value metrics, client_->Get(Format("/v2/train/jobs/{}/metrics", job)));
  const MutexLock lock(mu_);
  seen_.losses = ValuesIn(metrics, "loss");
  seen_.accuracies = ValuesIn(metrics, "accuracy");
  return {};
}

void DemoTraining::Decide(std::string problem) {
  {
    const MutexLock lock(mu_);
    seen_.problem = std::move(problem);
    seen_.decided = true;
  }
  decided_ = true;
}

}  // namespace tandem::cli
