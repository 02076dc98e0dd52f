#include "server/cli/demo_training.h"

#include <algorithm>
#include <chrono>
#include <format>
#include <utility>

#include "server/cli/demo_digits.h"
#include "server/cli/train_watch.h"

namespace tandem::cli {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::size_t kKeptValues = 60;  // Of a series that is shown.

void Append(std::vector<double>& series, double value) {
  series.push_back(value);
  if (series.size() > kKeptValues) series.erase(series.begin());
}

}  // namespace

std::string DigitsJob(const std::string& data, int steps) {
  constexpr int kEvaluations = 20;
  return std::format(R"({{"name": "demo", "model": "{}", "data": "{}", "steps": {}, "batch_size": 32, )"
                     R"("optimizer": {{"kind": "adamw", "lr": 0.002}}, "evaluation": {{"split": 0.1, )"
                     R"("every_steps": {}}}, "publish": "if_better", "seed": 1}})",
                     kDigitsModel, data, steps, std::max(1, steps / kEvaluations));
}

Result<std::unique_ptr<DemoTraining>> DemoTraining::Submit(int port, const std::string& job) {
  TANDEM_ASSIGN(auto client, ApiClient::Connect({.url = std::format("http://127.0.0.1:{}", port)}));
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
  const auto answer = client_->Get(std::format("/v2/train/jobs/{}", Seen().job.id));
  const auto job = answer ? ReadJobView(*answer) : Result<JobView>(std::unexpected(answer.error()));
  if (!job) {
    Decide("its job cannot be asked for: " + job.error().message);
    return true;
  }
  TakeIn(*job);
  if (!job->has_ended()) return false;
  if (job->state != "succeeded") {
    Decide(std::format("job {} {}: {}", job->id, job->state, PrintableLines(job->reason)));
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
    seen_.steps_per_second = static_cast<double>(job.step - first_->step) /
                             std::chrono::duration<double>(now - first_->time).count();
  }
  if (job.loss && job.step != seen_.job.step) Append(seen_.losses, *job.loss);
  if (job.metric && job.metric != seen_.job.metric) Append(seen_.accuracies, *job.metric);
  seen_.job = job;
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
