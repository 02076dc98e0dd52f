#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include "server/jobs/job_metrics.h"

namespace tandem {

// What was counted of training jobs, as metrics (tandem_training_*). Pure.
[[nodiscard]] std::vector<prometheus::MetricFamily> TrainingFamilies(const jobs::TrainingTotals& totals);

}  // namespace tandem
