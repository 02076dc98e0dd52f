#include "server/jobs/publish_order.h"

#include "api/base/format.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/measure_model.h"

namespace tandem::jobs {
namespace {

Result<double> MeasureServed(const PublishOrder& order, const PublishParts& parts, const JobFolder& folder) {
  TANDEM_ASSIGN(const auto served, parts.publisher.ServedFile(order.record.model));
  const std::optional<double> baseline = order.record.baseline;
  if (baseline && SameBytes(served, folder.source_model())) return *baseline;
  const auto measured = MeasureModel(order.job, served, folder, parts.options, parts.clock, parts.stop);
  if (measured) return *measured;
  return Fail(measured.error().code, "the served model could not be measured by the job's evaluation: {}",
              measured.error().message);
}

// Why the result is not better than what is served; empty when it is.
Result<std::string> WhyNotBetter(const PublishOrder& order, const PublishParts& parts, const JobFolder& folder) {
  const std::optional<double> best = order.record.progress.best_metric;
  if (!best) return std::string("the job has no evaluation to be better in");
  // It was found better by a server that ended before it could note so.
  if (parts.publisher.IsNewest(order.record.model, folder.result())) return std::string();
  TANDEM_ASSIGN(const double served, MeasureServed(order, parts, folder));
  const bool accuracy = HasAccuracy(order.job.loss.kind);
  if (accuracy ? *best > served : *best < served) return std::string();
  return Format("its best {} is {:.6g}, which is no better than the {:.6g} of the model that is served",
                accuracy ? "accuracy" : "evaluation loss", *best, served);
}

}  // namespace

Result<PublishOutcome> CarryOut(const PublishOrder& order, const PublishParts& parts) {
  if (parts.stop.load()) return Fail(ErrorCode::kUnavailable, "the server is stopping");
  const JobFolder folder = JobFolder::Of(parts.options.state, order.record.id);
  PublishOutcome outcome;
  if (order.only_if_better) {
    TANDEM_ASSIGN(outcome.why_not, WhyNotBetter(order, parts, folder));
    if (!outcome.why_not.empty()) return outcome;
  }
  TANDEM_ASSIGN(outcome.published,
                parts.publisher.Publish(order.record.model, folder.result(), order.job.replace_head));
  return outcome;
}

}  // namespace tandem::jobs
