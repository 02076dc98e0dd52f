#include "server/metrics/request_metrics.h"

#include <array>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace tandem {
namespace {

// 100 µs to 30 s, about three buckets a decade and finer where SLOs usually lie.
const prometheus::Histogram::BucketBoundaries& LatencyBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05,
      0.075,  0.1,     0.15,   0.2,   0.3,    0.5,   0.75,   1,    2.5,   5,    10,   30};
  return buckets;
}

const prometheus::Histogram::BucketBoundaries& BatchBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  return buckets;
}

// Finest where a prediction is nearly right.
const prometheus::Histogram::BucketBoundaries& PredictionBuckets() {
  static const prometheus::Histogram::BucketBoundaries buckets = {0.25, 0.5, 0.7,  0.8, 0.9, 0.95, 1, 1.05,
                                                                  1.1,  1.2, 1.35, 1.5, 2,   3,    5, 10};
  return buckets;
}

}  // namespace

std::string_view RequestOutcomeName(RequestOutcome outcome) {
  constexpr std::array<std::string_view, kRequestOutcomeCount> names = {"success",   "rejected", "expired",
                                                                        "cancelled", "invalid",  "error"};
  return names[static_cast<std::size_t>(std::to_underlying(outcome))];
}

std::string_view MissCauseName(MissCause cause) {
  constexpr std::array<std::string_view, 4> names = {"", "training", "other", "unknown"};
  return names[std::to_underlying(cause)];
}

struct RequestMetrics::Families {
  explicit Families(prometheus::Registry& registry)
      : latency(prometheus::BuildHistogram()
                    .Name("tandem_request_latency_seconds")
                    .Help("Time from the arrival of a request to its answer, by outcome")
                    .Register(registry)),
        met(prometheus::BuildCounter()
                .Name("tandem_slo_met_total")
                .Help("Requests with a deadline that were answered in time")
                .Register(registry)),
        missed(prometheus::BuildCounter()
                   .Name("tandem_slo_missed_total")
                   .Help("Requests with a deadline whose run ended late, was stopped at the deadline, or failed")
                   .Register(registry)),
        rejected(prometheus::BuildCounter()
                     .Name("tandem_slo_rejected_total")
                     .Help("Requests with a deadline that were refused or dropped uncomputed")
                     .Register(registry)),
        by_cause(prometheus::BuildCounter()
                     .Name("tandem_slo_missed_by_cause_total")
                     .Help("Requests with a deadline that were missed or rejected, by whether training is to blame")
                     .Register(registry)),
        batch(prometheus::BuildHistogram()
                  .Name("tandem_batch_size")
                  .Help("Elements in each run of a model")
                  .Register(registry)),
        prediction(prometheus::BuildHistogram()
                       .Name("tandem_run_prediction_ratio")
                       .Help("Time of a run divided by what was expected of it; half of them should be above 1")
                       .Register(registry)) {}

  prometheus::Family<prometheus::Histogram>& latency;
  prometheus::Family<prometheus::Counter>& met;
  prometheus::Family<prometheus::Counter>& missed;
  prometheus::Family<prometheus::Counter>& rejected;
  prometheus::Family<prometheus::Counter>& by_cause;
  prometheus::Family<prometheus::Histogram>& batch;
  prometheus::Family<prometheus::Histogram>& prediction;
};

struct RequestMetrics::Model {
  Model(Families& families, const std::string& name)
      : families(families),
        met(families.met.Add({{"model", name}})),
        missed(families.missed.Add({{"model", name}})),
        rejected(families.rejected.Add({{"model", name}})),
        by_training(AddCause(families, name, MissCause::kTraining)),
        by_other(AddCause(families, name, MissCause::kOther)),
        by_unknown(AddCause(families, name, MissCause::kUnknown)),
        batch(families.batch.Add({{"model", name}}, BatchBuckets())),
        prediction(families.prediction.Add({{"model", name}}, PredictionBuckets())) {
    for (std::size_t i = 0; i < latency.size(); ++i) {
      latency[i] = &families.latency.Add(
          {{"model", name}, {"outcome", std::string(RequestOutcomeName(static_cast<RequestOutcome>(i)))}},
          LatencyBuckets());
    }
  }

  ~Model() {
    for (prometheus::Histogram* histogram : latency) families.latency.Remove(histogram);
    families.met.Remove(&met);
    families.missed.Remove(&missed);
    families.rejected.Remove(&rejected);
    families.by_cause.Remove(&by_training);
    families.by_cause.Remove(&by_other);
    families.by_cause.Remove(&by_unknown);
    families.batch.Remove(&batch);
    families.prediction.Remove(&prediction);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  static prometheus::Counter& AddCause(Families& families, const std::string& name, MissCause cause) {
    return families.by_cause.Add({{"model", name}, {"cause", std::string(MissCauseName(cause))}});
  }

  Families& families;
  std::array<prometheus::Histogram*, kRequestOutcomeCount> latency;  // Owned by the family.
  prometheus::Counter& met;
  prometheus::Counter& missed;
  prometheus::Counter& rejected;
  prometheus::Counter& by_training;
  prometheus::Counter& by_other;
  prometheus::Counter& by_unknown;
  prometheus::Histogram& batch;
  prometheus::Histogram& prediction;
};

RequestMetrics::RequestMetrics(prometheus::Registry& registry) : families_(std::make_unique<Families>(registry)) {}

RequestMetrics::~RequestMetrics() = default;

std::shared_ptr<RequestMetrics::Model> RequestMetrics::Find(std::string_view model) {
  MutexLock lock(mu_);
  const auto it = models_.find(model);
  if (it != models_.end()) return it->second;
  const std::string name(model);
  return models_.emplace(name, std::make_shared<Model>(*families_, name)).first->second;
}

void RequestMetrics::Retain(const std::set<std::string, std::less<>>& served) {
  MutexLock lock(mu_);
  // The empty name counts requests for models that nobody serves.
  std::erase_if(models_, [&](const auto& model) { return !model.first.empty() && !served.contains(model.first); });
}

void RequestMetrics::Record(const RequestRecord& record) {
  const std::shared_ptr<Model> model = Find(record.model);
  model->latency[static_cast<std::size_t>(std::to_underlying(record.outcome))]->Observe(
      std::chrono::duration<double>(record.latency).count());
  switch (record.slo) {
    case SloVerdict::kNone: break;
    case SloVerdict::kMet: model->met.Increment(); break;
    case SloVerdict::kMissed: model->missed.Increment(); break;
    case SloVerdict::kRejected: model->rejected.Increment(); break;
  }
  if (record.cause == MissCause::kTraining) model->by_training.Increment();
  if (record.cause == MissCause::kOther) model->by_other.Increment();
  if (record.cause == MissCause::kUnknown) model->by_unknown.Increment();
}

void RequestMetrics::RecordRun(std::string_view model, std::int64_t elements,
                               std::optional<std::chrono::nanoseconds> expected, std::chrono::nanoseconds took) {
  const std::shared_ptr<Model> metrics = Find(model);
  metrics->batch.Observe(static_cast<double>(elements));
  if (expected) {
    metrics->prediction.Observe(static_cast<double>(took.count()) / static_cast<double>(expected->count()));
  }
}

}  // namespace tandem
