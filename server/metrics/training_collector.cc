#include "server/metrics/training_collector.h"

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "server/metrics/histogram_family.h"

namespace tandem {
namespace {

using jobs::JobTotals;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

ClientMetric Labelled(std::vector<ClientMetric::Label> labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  return metric;
}

ClientMetric OfJob(const JobTotals& job) {
  return Labelled({{"job", std::to_string(job.job)}});
}

MetricFamily JobCounter(const char* name, const char* help, const std::vector<JobTotals>& jobs,
                        std::int64_t JobTotals::* value) {
  MetricFamily family{name, help, MetricType::Counter, {}};
  for (const JobTotals& job : jobs) {
    ClientMetric metric = OfJob(job);
    metric.counter.value = static_cast<double>(job.*value);
    family.metric.push_back(std::move(metric));
  }
  return family;
}

MetricFamily Losses(const std::vector<JobTotals>& jobs) {
  MetricFamily family{"tandem_training_loss", "Loss of the newest step", MetricType::Gauge, {}};
  for (const JobTotals& job : jobs) {
    if (!job.loss) continue;
    ClientMetric metric = OfJob(job);
    metric.gauge.value = *job.loss;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

MetricFamily EstimateErrors(const std::vector<JobTotals>& jobs) {
  MetricFamily family{
      "tandem_training_memory_estimate_error",
      "By how much a job's memory was estimated wrongly, as a share of what was measured; above 0: too much",
      MetricType::Gauge,
      {}};
  const auto add = [&](const JobTotals& job, const char* part, const std::optional<double>& error) {
    if (!error) return;
    ClientMetric metric = Labelled({{"job", std::to_string(job.job)}, {"part", part}});
    metric.gauge.value = *error;
    family.metric.push_back(std::move(metric));
  };
  for (const JobTotals& job : jobs) {
    add(job, "persistent", job.persistent_error);
    add(job, "ephemeral", job.ephemeral_error);
  }
  return family;
}

MetricFamily Held(const std::vector<JobTotals>& jobs) {
  MetricFamily family{
      "tandem_training_held_seconds_total", "Time that a trainer was told to wait, and did", MetricType::Counter, {}};
  for (const JobTotals& job : jobs) {
    for (const HoldReason reason : kHoldReasons) {
      ClientMetric metric =
          Labelled({{"job", std::to_string(job.job)}, {"reason", std::string(HoldReasonName(reason))}});
      const auto held = job.held.find(reason);
      metric.counter.value = held == job.held.end() ? 0 : std::chrono::duration<double>(held->second).count();
      family.metric.push_back(std::move(metric));
    }
  }
  return family;
}

MetricFamily Acknowledgements(const AcknowledgementTimes& times) {
  return HistogramFamily("tandem_gate_acknowledgement_seconds",
                         "Time until trainers obeyed an order to wait or to go on, or were sent the signal to stop",
                         times.counts, AcknowledgementTimes::Bound, times.sum);
}

MetricFamily Classified(const std::map<OpClass, std::int64_t>& classified) {
  MetricFamily family{"tandem_op_class_total",
                      "Operators of trainers that came to be taken for this class after they were for the other",
                      MetricType::Counter,
                      {}};
  for (const OpClass op_class : {OpClass::kLight, OpClass::kHeavy}) {
    ClientMetric metric = Labelled({{"class", std::string(OpClassName(op_class))}});
    const auto counted = classified.find(op_class);
    metric.counter.value = counted == classified.end() ? 0 : static_cast<double>(counted->second);
    family.metric.push_back(std::move(metric));
  }
  return family;
}

}  // namespace

std::vector<MetricFamily> TrainingFamilies(const jobs::TrainingTotals& totals) {
  MetricFamily states{"tandem_training_jobs", "Training jobs by state", MetricType::Gauge, {}};
  for (const auto& [state, count] : totals.states) {
    ClientMetric metric = Labelled({{"state", std::string(jobs::JobStateName(state))}});
    metric.gauge.value = static_cast<double>(count);
    states.metric.push_back(std::move(metric));
  }
  MetricFamily publishes{
      "tandem_training_publishes_total", "Trained models by what became of them", MetricType::Counter, {}};
  for (const jobs::PublishResult result : jobs::kPublishResults) {
    ClientMetric metric = Labelled({{"result", std::string(jobs::PublishResultName(result))}});
    const auto counted = totals.publishes.find(result);
    metric.counter.value = counted == totals.publishes.end() ? 0 : static_cast<double>(counted->second);
    publishes.metric.push_back(std::move(metric));
  }
  const auto& of_jobs = totals.jobs;
  return {std::move(states),
          std::move(publishes),
          JobCounter("tandem_training_iterations_total",
                     "Steps of the optimizer, those done again after a trainer was lost included", of_jobs,
                     &JobTotals::iterations),
          JobCounter("tandem_training_attempts_total", "Trainers started", of_jobs, &JobTotals::attempts),
          JobCounter("tandem_training_retries_total", "Trainers that failed and are followed by another", of_jobs,
                     &JobTotals::retries),
          JobCounter("tandem_training_checkpoints_total", "Checkpoints written", of_jobs, &JobTotals::checkpoints),
          Losses(of_jobs),
          EstimateErrors(of_jobs),
          Held(of_jobs),
          Classified(totals.classified),
          Acknowledgements(totals.acknowledgements)};
}

}  // namespace tandem
